// SPDX-License-Identifier: Apache-2.0
/** The head of a service's page: its name, versions and hosts to choose from, the kinds as tabs, comparing and taking away. */

import { comparisonBefore } from "../core/compare.js";
import { resolveRange, widerRange } from "../core/range.js";
import { addressFromState, stateOfComparison, stateOfView } from "../core/route.js";
import { selectorText } from "../core/selector.js";
import { visibleText } from "../core/text.js";
import { element, icon, toast } from "./dom.js";
import { makeFilterMenu } from "./filter-menu.js";
import { makeKindTabs } from "./kind-tabs.js";
import { makeShareMenu } from "./share-menu.js";

/**
 * @typedef {import("../core/route.js").State} State
 * @typedef {import("./fleet.js").Context} Context
 * @typedef {{address: (format: string) => string, pinnedRange: () => Record<string, string> | null}} Graph what a graph panel tells of
 *   itself: where its answer is, and the range it is of
 */

/**
 * @param {State} state
 * @param {Record<string, readonly string[]>} [rows] conditions on rows beside those on the series
 * @returns {{query: string, from: string, until: string}}
 */
export function selectionOf({ service, hosts, versions, from, until, tab }, rows = {}) {
  return { query: selectorText(tab, { service: [service], host: hosts, version: versions, ...rows }), from, until };
}

/** Ranges that were brushed away from, to go back to. @type {WeakMap<object, import("../core/range.js").Range[]>} */
const brushTrails = new WeakMap();

/**
 * @param {import("../state/store.js").Store} store
 * @param {import("../core/range.js").Range} range
 * @param {Partial<State>} [more] what else changes with it
 */
export function brushed(store, range, more = {}) {
  const { from, until } = store.get();
  brushTrails.set(store, [...(brushTrails.get(store) ?? []), { from, until }]);
  store.set({ ...range, live: false, ...more });
  toast("Double click the timeline to go back.");
}

/** @param {import("../state/store.js").Store} store */
export function unbrushed(store) {
  const trail = brushTrails.get(store) ?? [];
  const now_s = Date.now() / 1000;
  const range = trail[trail.length - 1] ?? widerRange(resolveRange(store.get(), now_s), now_s);
  brushTrails.set(store, trail.slice(0, -1));
  store.set({ ...range, live: range.until === "now" });
}

/**
 * @param {Context} context
 * @param {{selection: () => {query: string, from: string, until: string}, graph: Graph, compared?: string}} of `compared` is the kind that
 *   a comparison is of, when it is not that of the tab; "" for a tab without stacks, which cannot be compared
 * @returns {{root: HTMLElement, update: (state: State) => void}}
 */
export function makeServiceHead({ store, signal }, { selection, graph, compared }) {
  const state = store.get();
  const menus = makeMenus(store);
  const tabs = makeKindTabs({ store, signal });
  const share = makeShareMenu(store, { selection, address: graph.address, pinnedRange: graph.pinnedRange });
  const up = element("a", { class: "crumb", href: addressFromState(stateOfView(state, "fleet")), "data-route": true }, "Fleet");
  const head = element("div", { class: "view-head is-service" },
    element("div", { class: "title" }, up, element("span", { class: "crumb-mark", "aria-hidden": "true" }, "/"), element("h1", { class: "name" }, visibleText(state.service))),
    element("div", { class: "filters" }, menus.version.root, menus.host.root), tabs.root, heatLink(store), compared !== "" && compareButton(store, graph.pinnedRange, compared), share.root);
  return {
    root: element("div", {}, head, tabs.notes),
    update(now) {
      menus.host.update(now.hosts);
      menus.version.update(now.versions);
      tabs.update(now);
    },
  };
}

/** @param {import("../state/store.js").Store} store */
function makeMenus(store) {
  // A filter offers what the other filters leave, not what it has itself chosen.
  const without = (/** @type {Partial<State>} */ patch) => () => selectionOf({ ...store.get(), ...patch });
  return {
    host: makeFilterMenu({ label: "host", all: "All hosts", many: "host", selection: without({ hosts: [] }), choose: (hosts) => store.set({ hosts, at: "" }) }),
    version: makeFilterMenu({ label: "version", all: "All versions", many: "version", selection: without({ versions: [] }), choose: (versions) => store.set({ versions, at: "" }) }),
  };
}

/** All hosts of the service over the range. @param {import("../state/store.js").Store} store */
function heatLink(store) {
  const state = store.get();
  const link = element("a", { class: "button heat-link", "data-route": true, title: "CPU by host and time" }, icon("grid"), "Hosts by time");
  const point = () => {
    link.href = addressFromState(stateOfView(store.get(), "heat", state.service));
  };
  point();
  // The range may have moved on since.
  link.addEventListener("pointerdown", point);
  link.addEventListener("focus", point);
  return link;
}

/**
 * This range beside the one before it; the range is that of the samples on screen.
 * @param {import("../state/store.js").Store} store
 * @param {() => Record<string, string> | null} pinnedRange
 * @param {string} [compared] the kind, when it is not that of the tab
 */
function compareButton(store, pinnedRange, compared) {
  const press = () => {
    const state = { ...store.get(), tab: compared ?? store.get().tab };
    const { from, until } = { ...state, ...pinnedRange() };
    store.set(stateOfComparison(state, comparisonBefore(state, resolveRange({ from, until }, Date.now() / 1000))));
  };
  return element("button", { class: "button", type: "button", title: "Compare this range with the one before it", onclick: press }, icon("swap"), "Compare");
}
