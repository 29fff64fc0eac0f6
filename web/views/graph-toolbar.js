// SPDX-License-Identifier: Apache-2.0
/** The rows above the graph: search with the server's share, direction, what is shown, keys; below it the frame operators. */

import { element, icon } from "./dom.js";
import { makeOperatorBar } from "./operator-bar.js";

/**
 * @typedef {import("../core/route.js").State} State
 * @typedef {import("../core/route.js").Shown} Shown
 */

const SEARCH_AFTER_MS = 250;

/** @type {ReadonlyArray<{shown: Shown, label: string}>} */
const SHOWN = [
  { shown: "both", label: "Both" },
  { shown: "graph", label: "Graph" },
  { shown: "table", label: "Table" },
];

/**
 * @param {import("../state/store.js").Store} store
 * @param {{openKeys: () => void, nextMatch: (step: 1 | -1) => void}} asked
 * @returns {{root: HTMLElement, share: HTMLElement, update: (state: State) => void, addTools: (tools: HTMLElement[]) => void}}
 */
export function makeGraphToolbar(store, { openKeys, nextMatch }) {
  const { input, update: updateInput } = searchInput(store, nextMatch);
  const share = element("span", { class: "search-share", role: "status" });
  const regex = toggle(".*", "Search by regular expression", () => store.set({ mode: store.get().mode === "regex" ? "text" : "regex" }));
  const invert = toggle("Leaves first", "Turn the graph: leaves as roots (i)", () => store.set({ invert: !store.get().invert, at: "" }));
  invert.prepend(icon("flip"));
  const threads = toggle("By thread", "Thread names above their frames", () => store.set({ group: store.get().group === "thread" ? "" : "thread", at: "" }));
  const lines = toggle("By line", "A function at each of its lines is a frame of its own", () => store.set({ by: store.get().by === "line" ? "function" : "line", at: "" }));
  const operators = makeOperatorBar(store);
  const choices = SHOWN.map(({ shown, label }) => toggle(label, `Show ${label.toLowerCase()}`, () => store.set({ shown })));
  const keys = element("button", { class: "button is-icon is-pointer-only", type: "button", title: "Keys (?)", "aria-label": "Keys", onclick: openKeys }, icon("keys"));
  const root = element(
    "div",
    { class: "toolbar", role: "search" },
    element("div", { class: "search" }, icon("search"), input, regex),
    share,
    element("div", { class: "toolbar-end" }, threads, lines, invert, element("div", { class: "segments", role: "group", "aria-label": "Shown" }, ...choices), keys),
    operators.root,
  );
  return {
    root,
    share,
    addTools: (tools) => threads.before(...tools),
    update(state) {
      updateInput(state.search);
      operators.update(state);
      regex.setAttribute("aria-pressed", String(state.mode === "regex"));
      threads.setAttribute("aria-pressed", String(state.group === "thread"));
      lines.setAttribute("aria-pressed", String(state.by === "line"));
      invert.setAttribute("aria-pressed", String(state.invert));
      choices.forEach((choice, at) => choice.setAttribute("aria-pressed", String(SHOWN[at].shown === state.shown)));
    },
  };
}

/**
 * @param {import("../state/store.js").Store} store
 * @param {(step: 1 | -1) => void} nextMatch
 */
function searchInput(store, nextMatch) {
  let timer = 0;
  const ask = () => {
    clearTimeout(timer);
    store.set({ search: input.value }, { replace: true });
  };
  const later = () => {
    clearTimeout(timer);
    timer = window.setTimeout(ask, SEARCH_AFTER_MS);
  };
  const takeKey = (/** @type {Event} */ event) => {
    const { key, shiftKey } = /** @type {KeyboardEvent} */ (event);
    if (key === "Enter" && input.value === store.get().search) nextMatch(shiftKey ? -1 : 1);
    else if (key === "Enter") ask();
    else if (key === "Escape") input.blur();
  };
  const input = element("input", {
    class: "search-input",
    type: "search",
    placeholder: "Search functions",
    "aria-label": "Search functions; the share that matches is said beside",
    autocomplete: "off",
    spellcheck: "false",
    "data-search": true,
    oninput: later,
    onkeydown: takeKey,
  });
  const update = (/** @type {string} */ search) => {
    if (document.activeElement !== input || input.value === "") input.value = search;
  };
  return { input, update };
}

/**
 * @param {string} label
 * @param {string} title
 * @param {() => void} press
 */
function toggle(label, title, press) {
  return element("button", { class: "button toggle", type: "button", title, "aria-pressed": "false", onclick: press }, label);
}
