// SPDX-License-Identifier: Apache-2.0
/** One service: how much, when, where, why. Timeline, what the data is worth, flame graph, table, details. */

import { comparisonBefore } from "../core/compare.js";
import { frameWords, weightLines } from "../core/frame-words.js";
import { resolveRange, widerRange } from "../core/range.js";
import { addressFromState, stateOfComparison, stateOfView } from "../core/route.js";
import { selectorText } from "../core/selector.js";
import { visibleText } from "../core/text.js";
import { getJson } from "../net/api.js";
import { timelineFromSeries } from "../draw/timeline-painter.js";
import { makeDetails } from "./details.js";
import { element, fill, icon, toast } from "./dom.js";
import { makeFilterMenu } from "./filter-menu.js";
import { makeGraphPanel, showSearchWords } from "./graph-panel.js";
import { makeKeysDialog } from "./keys-dialog.js";
import { makeLoader } from "./loader.js";
import { makeLossStrip } from "./loss-strip.js";
import { makeGraphToolbar } from "./graph-toolbar.js";
import { makeShareMenu } from "./share-menu.js";
import { makeTimeline } from "./timeline.js";
import { makeTopTable, serverSort } from "./top-table.js";

/**
 * @typedef {import("../core/route.js").State} State
 * @typedef {import("./fleet.js").Context} Context
 * @typedef {import("./fleet.js").View} View
 * @typedef {import("../net/api.js").TopRow} TopRow
 */

const TOP_ROWS = 200;
const TIMELINE_KEYS = /** @type {const} */ (["from", "until", "hosts", "versions"]);
const GRAPH_KEYS = /** @type {const} */ (["from", "until", "hosts", "versions", "at", "search", "mode", "invert", "threads", "lines"]);
const TOP_KEYS = /** @type {const} */ (["from", "until", "hosts", "versions", "search", "mode", "sort", "lines"]);

/**
 * @param {State} state
 * @returns {{query: string, from: string, until: string}}
 */
function selectionOf({ service, hosts, versions, from, until, tab }) {
  return { query: selectorText(tab, { service: [service], host: hosts, version: versions }), from, until };
}

/**
 * @param {State} state
 * @param {State} previous
 * @param {readonly (keyof State)[]} keys
 */
function hasChanged(state, previous, keys) {
  return keys.some((key) => String(state[key]) !== String(previous[key]));
}

/**
 * @param {HTMLElement} place
 * @param {Context} context
 * @returns {View}
 */
export function mountService(place, { store, signal }) {
  const selection = () => selectionOf(store.get());
  const parts = makeParts({ store, signal }, selection);
  const { graph, details, top, toolbar, timeline, menus, keys } = parts;
  fill(place, parts.head, parts.timelinePanel, toolbar.root, parts.panes, keys.root);

  const loadTop = async (/** @type {boolean} */ isQuiet) => {
    const { search, mode, sort, lines } = store.get();
    const asked = { ...selection(), search, mode: search ? mode : "", sort: serverSort(sort), limit: TOP_ROWS, by: lines ? "line" : "" };
    const answer = await parts.topLoader.run("Reading the table", (signal) => getJson("top", asked, signal), { isQuiet });
    if (answer) top.show(answer, store.get().sort);
  };
  const loadTimeline = async (/** @type {boolean} */ isQuiet) => {
    const { service, from, until } = store.get();
    const read = (/** @type {AbortSignal} */ signal) => Promise.all([getJson("series", selection(), signal), getJson("deploys", { service, from, until }, signal)]);
    const answers = await parts.timelineLoader.run("Reading the timeline", read, { isQuiet });
    if (!answers) return;
    timeline.show(timelineFromSeries(answers[0]));
    timeline.markers.show(answers[1].deploys, store.get());
  };
  const showControls = (/** @type {State} */ state) => {
    toolbar.update(state);
    menus.host.update(state.hosts);
    menus.version.update(state.versions);
    parts.panes.className = `panes is-${state.shown}`;
  };
  parts.retry.top = () => loadTop(false);
  parts.retry.timeline = () => loadTimeline(false);
  showControls(store.get());
  loadTimeline(false);
  graph.update();
  loadTop(false);
  return {
    update(state, previous) {
      showControls(state);
      if (hasChanged(state, previous, TIMELINE_KEYS)) loadTimeline(false);
      if (hasChanged(state, previous, GRAPH_KEYS)) graph.update();
      if (hasChanged(state, previous, TOP_KEYS)) loadTop(false);
      if (hasChanged(state, previous, ["shown"])) graph.flame.invalidate();
    },
    refresh() {
      loadTimeline(true);
      graph.refresh();
      loadTop(true);
    },
    unmount() {
      graph.unmount();
      details.hide();
      parts.topLoader.cancel();
      parts.timelineLoader.cancel();
    },
  };
}

/**
 * All parts of the view, wired to the state.
 * @param {Context} context
 * @param {() => {query: string, from: string, until: string}} selection
 */
function makeParts({ store, signal }, selection) {
  const keys = makeKeysDialog();
  const strip = makeLossStrip();
  const details = makeDetails({ close: () => graph.flame.select(-1) });
  const toggleTable = () => store.set({ shown: store.get().shown === "table" ? "both" : "table" });
  const onKey = (/** @type {string} */ key) => {
    if (key === "t") toggleTable();
    else if (key === "i") store.set({ invert: !store.get().invert, at: "" });
    else keys.open();
  };
  const graph = makeGraphPanel({
    store,
    signal,
    selection,
    onKey,
    onAnswer(answer) {
      strip.show(answer.quality);
      showSearchWords(toolbar.share, answer);
      if (graph.flame.selected >= 0) showFrame(graph.flame.selected);
    },
    onSelect: (node) => showFrame(node),
  });
  const toolbar = makeGraphToolbar(store, { openKeys: keys.open, nextMatch: (step) => graph.flame.selectMatch(step) });
  const showFrame = (/** @type {number} */ node) => {
    const tree = graph.flame.tree;
    if (!tree || node < 0) return details.hide();
    const words = frameWords(tree, node, tree.total[graph.flame.focus]);
    const find = { label: "Search for it", run: () => store.set({ search: words.name, mode: "text" }) };
    return details.show(words, tree.functionOf[node] >= 0 ? [{ label: "Zoom to it", run: () => graph.flame.zoomTo(node) }, find] : []);
  };
  const showFunction = (/** @type {TopRow} */ row) => {
    const total = graph.shown()?.answer.total ?? 0;
    const name = visibleText(row.name);
    const binary = visibleText(row.binary);
    graph.flame.mark(name, binary);
    const lines = weightLines({ self: row.self, total: row.total, viewTotal: total, selectionTotal: total });
    const words = { name, binary, file: visibleText(row.file), line: row.line, code: row.code, lines };
    details.show(words, [{ label: "Search for it", run: () => store.set({ search: row.name, mode: "text" }) }]);
  };
  const top = makeTopTable({ sort: (sort) => store.set({ sort }), choose: showFunction });
  const topPanel = element("section", { class: "card panel top-panel", "aria-label": "Functions" }, element("div", { class: "card-head" }, element("h2", {}, "Functions")), element("div", { class: "panel-picture" }, top.root));
  const timeline = makeTimeline({ choose: (range) => brushed(store, range), back: () => unbrushed(store), signal });
  const timelinePanel = element("section", { class: "card panel timeline-panel", "aria-label": "CPU over time" },
    element("div", { class: "card-head" }, element("h2", {}, "CPU over time"), element("p", { class: "is-quiet card-note" }, "cores · drag to choose a range, double click to go back")),
    element("div", { class: "panel-picture" }, timeline.root), strip.root);
  const menus = makeMenus(store, selection);
  const side = element("div", { class: "side" }, details.root, topPanel);
  const panes = element("div", { class: "panes" }, graph.root, side);
  /** Filled in by the view, which knows how to read again. */
  const retry = { top() {}, timeline() {} };
  const share = makeShareMenu(store, { selection, address: graph.address, pinnedRange: graph.pinnedRange });
  return {
    keys, details, graph, toolbar, top, timeline, timelinePanel, menus, panes,
    topLoader: makeLoader(topPanel, { retry: () => retry.top() }),
    timelineLoader: makeLoader(timelinePanel, { retry: () => retry.timeline() }),
    retry,
    head: serviceHead(store, menus, { share: share.root, compare: compareButton(store, graph.pinnedRange) }),
  };
}

/** Ranges that were brushed away from, to go back to. @type {WeakMap<object, import("../core/range.js").Range[]>} */
const brushTrails = new WeakMap();

/**
 * @param {import("../state/store.js").Store} store
 * @param {import("../core/range.js").Range} range
 */
function brushed(store, range) {
  const { from, until } = store.get();
  brushTrails.set(store, [...(brushTrails.get(store) ?? []), { from, until }]);
  store.set({ ...range, live: false });
  toast("Double click the timeline to go back.");
}

/** @param {import("../state/store.js").Store} store */
function unbrushed(store) {
  const trail = brushTrails.get(store) ?? [];
  const now_s = Date.now() / 1000;
  const range = trail[trail.length - 1] ?? widerRange(resolveRange(store.get(), now_s), now_s);
  brushTrails.set(store, trail.slice(0, -1));
  store.set({ ...range, live: range.until === "now" });
}

/**
 * @param {import("../state/store.js").Store} store
 * @param {() => {query: string, from: string, until: string}} selection
 */
function makeMenus(store, selection) {
  // A filter offers what the other filters leave, not what it has itself chosen.
  const without = (/** @type {Partial<State>} */ patch) => () => selectionOf({ ...store.get(), ...patch });
  return {
    host: makeFilterMenu({ label: "host", all: "All hosts", many: "host", selection: without({ hosts: [] }), choose: (hosts) => store.set({ hosts, at: "" }) }),
    version: makeFilterMenu({ label: "version", all: "All versions", many: "version", selection: without({ versions: [] }), choose: (versions) => store.set({ versions, at: "" }) }),
    selection,
  };
}

/**
 * @param {import("../state/store.js").Store} store
 * @param {ReturnType<typeof makeMenus>} menus
 * @param {{share: HTMLElement, compare: HTMLElement}} ends
 */
function serviceHead(store, menus, { share, compare }) {
  const state = store.get();
  const up = element("a", { class: "crumb", href: addressFromState(stateOfView(state, "fleet")), "data-route": true }, "Fleet");
  const tabs = element("div", { class: "tabs", role: "tablist", "aria-label": "Kinds" }, element("button", { class: "tab", role: "tab", type: "button", "aria-selected": "true" }, "CPU"));
  return element("div", { class: "view-head is-service" },
    element("div", { class: "title" }, up, element("span", { class: "crumb-mark", "aria-hidden": "true" }, "/"), element("h1", { class: "name" }, visibleText(state.service))),
    element("div", { class: "filters" }, menus.version.root, menus.host.root), tabs, compare, share);
}

/**
 * This range beside the one before it; the range is that of the samples on screen.
 * @param {import("../state/store.js").Store} store
 * @param {() => Record<string, string> | null} pinnedRange
 */
function compareButton(store, pinnedRange) {
  const press = () => {
    const state = store.get();
    const { from, until } = { ...state, ...pinnedRange() };
    store.set(stateOfComparison(state, comparisonBefore(state, resolveRange({ from, until }, Date.now() / 1000))));
  };
  return element("button", { class: "button", type: "button", title: "Compare this range with the one before it", onclick: press }, icon("swap"), "Compare");
}
