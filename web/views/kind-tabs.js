// SPDX-License-Identifier: Apache-2.0
/** The kinds of a service as tabs. Those without data in the range say why and lead nowhere. */

import { TABS, tabOfKind } from "../core/kinds.js";
import { selectorText } from "../core/selector.js";
import { getJson, isCancelled } from "../net/api.js";
import { element } from "./dom.js";

/**
 * @typedef {import("../core/route.js").State} State
 * @typedef {import("../core/kinds.js").Tab} Tab
 */

/** What another tab does not keep of the state: what was chosen in this one. */
const FRESH = Object.freeze({ at: "", search: "", sort: "", waits: [], object: "", buckets: "", stacks: /** @type {const} */ (""), idle: /** @type {const} */ ("hide") });

/**
 * @param {import("./fleet.js").Context} context
 * @returns {{root: HTMLElement, update: (state: State) => void}}
 */
export function makeKindTabs({ store, signal }) {
  const buttons = TABS.map((tab) => {
    const button = element("button", { class: "tab", role: "tab", type: "button", id: `tab-${tab.key}`, "data-tab": tab.key }, tab.label);
    button.addEventListener("click", () => {
      if (button.getAttribute("aria-disabled") !== "true") store.set({ ...FRESH, tab: tab.key });
    });
    return button;
  });
  const root = element("div", { class: "tabs", role: "tablist", "aria-label": "Kinds", onkeydown: (event) => walk(/** @type {KeyboardEvent} */ (event), buttons) }, ...buttons);
  let asked = "";
  const readKinds = async (/** @type {State} */ { service, from, until }) => {
    const key = [service, from, until].join("\n");
    if (key === asked) return;
    asked = key;
    try {
      const answer = await getJson("kinds", { query: selectorText("cpu", { service: [service] }), from, until }, signal);
      if (key === asked) showKinds(new Set(answer.kinds.filter((/** @type {{has_data: boolean}} */ each) => each.has_data).map((/** @type {{kind: string}} */ each) => each.kind)));
    } catch (error) {
      // Without this answer every tab stays open, and says itself that it is empty.
      if (!isCancelled(error)) asked = "";
    }
  };
  const showKinds = (/** @type {Set<string>} */ withData) => {
    buttons.forEach((button, at) => {
      const has = TABS[at].key === "cpu" || TABS[at].kinds.some((kind) => withData.has(kind));
      button.setAttribute("aria-disabled", String(!has));
      button.title = has ? "" : TABS[at].without;
    });
  };
  return {
    root,
    update(state) {
      const chosen = tabOfKind(state.tab);
      buttons.forEach((button, at) => {
        const isChosen = TABS[at].key === chosen;
        button.setAttribute("aria-selected", String(isChosen));
        button.tabIndex = isChosen ? 0 : -1;
        if (isChosen) button.scrollIntoView({ block: "nearest", inline: "nearest" });
      });
      readKinds(state);
    },
  };
}

/**
 * Arrows go from tab to tab, as in any list of tabs.
 * @param {KeyboardEvent} event
 * @param {HTMLButtonElement[]} buttons
 */
function walk(event, buttons) {
  const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
  const at = buttons.findIndex((button) => button === document.activeElement);
  if (step === undefined || at < 0) return;
  event.preventDefault();
  const next = buttons[(at + step + buttons.length) % buttons.length];
  next.focus();
}
