// SPDX-License-Identifier: Apache-2.0
/** The kinds of a service as tabs. Those without data in the range say why and lead nowhere; of the chosen one is told what limits it. */

import { TABS, kindState, kindStateWords, tabOfKind } from "../core/kinds.js";
import { selectorText } from "../core/selector.js";
import { getJson, isCancelled } from "../net/api.js";
import { visibleText } from "../core/text.js";
import { element, fill, icon } from "./dom.js";

/**
 * @typedef {import("../core/route.js").State} State
 * @typedef {import("../core/kinds.js").Tab} Tab
 */

/** What another tab does not keep of the state: what was chosen in this one. */
const FRESH = Object.freeze({ at: "", search: "", sort: "", waits: [], object: "", buckets: "", stacks: /** @type {const} */ (""), idle: /** @type {const} */ ("hide"), column: /** @type {const} */ ("") });

/**
 * @param {import("./fleet.js").Context} context
 * @returns {{root: HTMLElement, notes: HTMLElement, update: (state: State) => void}}
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
  const notes = element("ul", { class: "kind-notes", "aria-label": "What limits this kind" });
  let asked = "";
  const readKinds = async (/** @type {State} */ { service, from, until }) => {
    const key = [service, from, until].join("\n");
    if (key === asked) return;
    asked = key;
    try {
      const of = (/** @type {string} */ kind) => ({ query: selectorText(kind, { service: [service] }), from, until });
      // A host on which the service did nothing but wait has no samples, and one whose agent sends no times may have some.
      const hostsOf = (/** @type {string} */ kind) => getJson("labels/host/values", of(kind), signal).catch(() => ({ values: [] }));
      const read = [getJson("kinds", of("cpu"), signal), getJson("agents", { from, until }, signal), hostsOf("time"), hostsOf("cpu")];
      const [answer, { agents: all }, ...found] = await Promise.all(read);
      if (key !== asked) return;
      const hosts = new Set(found.flatMap(({ values }) => values).map((/** @type {{value: string}} */ { value }) => value));
      const agents = all.filter((/** @type {{host: string}} */ { host }) => hosts.size === 0 || hosts.has(host));
      const withData = answer.kinds.filter((/** @type {{has_data: boolean}} */ each) => each.has_data);
      showKinds(new Set(withData.map((/** @type {{kind: string}} */ each) => each.kind)), TABS.map(({ kinds }) => kindStateWords(kindState(agents, kinds))));
    } catch (error) {
      // Without this answer every tab stays open, and says itself that it is empty.
      if (!isCancelled(error)) asked = "";
    }
  };
  const showKinds = (/** @type {Set<string>} */ withData, /** @type {string[][]} */ words) => {
    const chosen = tabOfKind(store.get().tab);
    fill(notes, ...words.flatMap((some, at) => (TABS[at].key === chosen ? some.map((each) => element("li", {}, icon("warning"), visibleText(each))) : [])));
    buttons.forEach((button, at) => {
      const has = TABS[at].key === "cpu" || TABS[at].kinds.some((kind) => withData.has(kind));
      button.setAttribute("aria-disabled", String(!has));
      button.title = has ? "" : [TABS[at].without, ...words[at].map((each) => `${each}.`)].join(" ");
    });
  };
  return {
    root,
    notes,
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
