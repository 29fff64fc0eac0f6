// SPDX-License-Identifier: Apache-2.0
/** The list of keys, opened by `?`. */

import { element, icon } from "./dom.js";

/** @type {ReadonlyArray<[string[], string]>} */
const KEYS = [
  [["/"], "search"],
  [["n", "N"], "next match, match before"],
  [["↑", "↓"], "caller, heaviest callee"],
  [["←", "→"], "neighbour in the row"],
  [["Enter"], "zoom to the frame"],
  [["Backspace"], "go back"],
  [["Home"], "show everything"],
  [["Esc"], "let go of the frame"],
  [["i"], "turn the graph: leaves as roots"],
  [["f", "c"], "focus on the frame, its callers"],
  [["t"], "table or graph and table"],
  [["Ctrl", "wheel"], "zoom about the pointer; Shift and wheel moves"],
  [["?"], "this list"],
];

/** @returns {{root: HTMLDialogElement, open: () => void}} */
export function makeKeysDialog() {
  const list = element(
    "dl",
    { class: "keys" },
    ...KEYS.flatMap(([keys, what]) => [element("dt", {}, ...keys.map((key) => element("kbd", {}, key))), element("dd", {}, what)]),
  );
  const close = element("button", { class: "button is-icon", type: "button", "aria-label": "Close", onclick: () => root.close() }, icon("close"));
  const root = element(
    "dialog",
    { class: "dialog", "aria-label": "Keys of the flame graph" },
    element("div", { class: "card-head" }, element("h2", {}, "Keys of the flame graph"), close),
    list,
  );
  root.addEventListener("click", (event) => event.target === root && root.close());
  return { root, open: () => root.showModal() };
}
