// SPDX-License-Identifier: Apache-2.0
/** Taking the view elsewhere: a link that always shows these samples, the same question in a terminal, the stacks as a file. */

import { operatorOptions } from "../core/operators.js";
import { addressFromState } from "../core/route.js";
import { shellWord } from "../core/selector.js";
import { copyText, element, icon } from "./dom.js";
import { makePopover } from "./popover.js";

/**
 * @param {import("../state/store.js").Store} store
 * @param {{
 *   selection: () => {query: string, from: string, until: string}, address: (format: string) => string,
 *   pinnedRange: () => Record<string, string> | null,
 * }} graph
 * @returns {{root: HTMLElement}}
 */
export function makeShareMenu(store, { selection, address, pinnedRange }) {
  const copyLink = () => {
    const range = pinnedRange() ?? {};
    const link = location.origin + addressFromState({ ...store.get(), ...range });
    copyText(link, "Link copied. It keeps this range of time.");
  };
  const copyCommand = () => {
    const { query, from, until } = selection();
    const range = `--from ${from}${until === "now" ? "" : ` --until ${until}`}`;
    const state = store.get();
    const idle = state.idle === "hide" ? "" : ` --idle ${state.idle}`;
    const column = state.column === "" ? "" : ` --column ${state.column}`;
    copyText(`emberwatch query ${shellWord(query)} ${range}${idle}${column}${operatorOptions(state)} --format top`, "Command copied.");
    popover.close();
  };
  const download = (/** @type {string} */ format, /** @type {string} */ name) => {
    const link = element("a", { href: address(format), download: name });
    link.click();
    popover.close();
  };
  const item = (/** @type {string} */ label, /** @type {string} */ hint, /** @type {() => void} */ run) =>
    element("button", { class: "menu-item", type: "button", onclick: run }, label, element("span", { class: "is-quiet" }, hint));
  const panel = element(
    "div",
    { class: "menu" },
    item("Folded stacks", "text, for flamegraph.pl and speedscope", () => download("folded", "emberwatch.folded.txt")),
    item("JSON", "as the page reads it", () => download("json", "emberwatch.json")),
    item("Copy as a command", "the same question in a terminal", copyCommand),
  );
  const more = element("button", { class: "button", type: "button", "aria-label": "Download" }, icon("download"), icon("chevron"));
  const link = element("button", { class: "button", type: "button", onclick: copyLink }, icon("link"), "Copy link");
  const popover = makePopover(more, panel);
  return { root: element("div", { class: "share-menu" }, link, popover.root) };
}
