// SPDX-License-Identifier: Apache-2.0
/** Two sides compared: ranges on one timeline, the graph coloured by change in three shapes, the functions that changed. */

import { NO_RATES, comparisonBefore, hasSides, sideOf, sidePatch, spanOfBoth, spanOfSide, swapped } from "../core/compare.js";
import { changeLines } from "../core/diff-tree.js";
import { requestsOf, verdictWords } from "../core/diff-words.js";
import { OPERATOR_KEYS, operatorParameters } from "../core/operators.js";
import { resolveRange } from "../core/range.js";
import { addressFromState, stateOfComparison, stateOfView } from "../core/route.js";
import { labelsOfSelector } from "../core/selector.js";
import { visibleText } from "../core/text.js";
import { formatShare } from "../core/units.js";
import { timelineFromSeries } from "../draw/timeline-painter.js";
import { getJson } from "../net/api.js";
import { changeOfRow, makeChangedTable, serverChangedSort } from "./changed-table.js";
import { makeCompareSides } from "./compare-sides.js";
import { makeCompareTimeline } from "./compare-timeline.js";
import { makeDetails } from "./details.js";
import { makeDeployPicker } from "./deploy-picker.js";
import { SHAPES, makeDiffGraph, sidesAsked } from "./diff-graph.js";
import { copyText, element, fill, icon } from "./dom.js";
import { frameActions } from "./frame-actions.js";
import { makeGraphToolbar } from "./graph-toolbar.js";
import { makeKeysDialog } from "./keys-dialog.js";
import { makeLoader } from "./loader.js";

/**
 * @typedef {import("../core/route.js").State} State
 * @typedef {import("../core/compare.js").SideName} SideName
 * @typedef {import("../core/diff-tree.js").DiffAnswer} DiffAnswer
 * @typedef {import("./fleet.js").Context} Context
 * @typedef {import("./fleet.js").View} View
 */

const TOP_ROWS = 200;
const SIDES = /** @type {const} */ (["a", "aFrom", "aUntil", "aRate", "b", "bFrom", "bUntil", "bRate"]);
const GRAPH_KEYS = /** @type {const} */ ([...SIDES, "shape", "at", "search", "mode", ...OPERATOR_KEYS]);
const TOP_KEYS = /** @type {const} */ ([...SIDES, "search", "mode", "sort", ...OPERATOR_KEYS]);
const nowS = () => Date.now() / 1000;

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
export function mountCompare(place, context) {
  const { store } = context;
  let inner = hasSides(store.get()) ? mountDiff(place, context) : mountChoice(place, context);
  let isDiff = hasSides(store.get());
  return {
    update(state, previous) {
      if (hasSides(state) === isDiff) return inner.update(state, previous);
      inner.unmount();
      isDiff = hasSides(state);
      inner = isDiff ? mountDiff(place, context) : mountChoice(place, context);
      return undefined;
    },
    refresh: () => inner.refresh(),
    unmount: () => inner.unmount(),
  };
}

/**
 * Nothing is chosen yet: each service leads to the comparison of the range with the time before it.
 * @param {HTMLElement} place
 * @param {Context} context
 * @returns {View}
 */
function mountChoice(place, { store }) {
  const list = element("ul", { class: "choices" });
  const panel = element("section", { class: "card panel", "aria-label": "What to compare" }, element("div", { class: "panel-picture" }, list));
  const loader = makeLoader(panel, { retry: () => load() });
  const load = async () => {
    const { from, until } = store.get();
    const answer = await loader.run("Reading the services", (signal) => getJson("services", { from, until }, signal));
    if (!answer) return;
    if (answer.services.length === 0) {
      loader.say(element("p", { class: "message-title" }, "No service has data in this range."), element("p", { class: "message-hint" }, "Two sides need samples to be compared."));
    }
    const span = resolveRange(store.get(), nowS());
    fill(list, ...answer.services.map((/** @type {import("../net/api.js").ServiceRow} */ row) => {
      const state = stateOfComparison(store.get(), comparisonBefore({ service: row.service, hosts: [], versions: [], tab: "cpu" }, span));
      return element("li", {}, element("a", { class: "choice", href: addressFromState(state), "data-route": true },
        element("span", { class: "name" }, visibleText(row.service)), element("span", { class: "is-quiet" }, `${formatShare(row.share)} of the fleet`)));
    }));
  };
  const deploys = element("a", { href: addressFromState(stateOfView(store.get(), "deploys")), "data-route": true }, "a deploy");
  fill(place, element("div", { class: "view-head" }, element("h1", {}, "Compare"),
    element("p", { class: "is-quiet" }, "Choose a service, to compare the range above with the time before it, or ", deploys, ".")), panel);
  load();
  return {
    update: () => void load(),
    refresh() {},
    unmount: () => loader.cancel(),
  };
}

/** The one service of both sides; "" when there is no such. @param {State} state */
function serviceOfBoth({ a, b }) {
  const services = [a, b].map((query) => labelsOfSelector(query)?.labels.service ?? []);
  return String(services[0]) === String(services[1]) && services[0].length === 1 ? services[0][0] : "";
}

/**
 * @param {HTMLElement} place
 * @param {Context} context
 * @returns {View}
 */
function mountDiff(place, { store, signal }) {
  const parts = makeParts({ store, signal });
  const { graph, sides, timeline, toolbar, shapes, table } = parts;
  let stretch = 1;
  let active = /** @type {SideName} */ ("b");
  parts.activate = (side) => {
    active = side;
    parts.showActive(active);
  };
  parts.widen = () => {
    stretch *= 2;
    loadTimeline();
  };
  const spans = () => ({ a: spanOfSide(sideOf(store.get(), "a"), nowS()), b: spanOfSide(sideOf(store.get(), "b"), nowS()) });
  const loadTimeline = async () => {
    const { a, b } = spans();
    const { from_s, until_s } = spanOfBoth(a, b, { now_s: nowS(), stretch });
    if (!Number.isFinite(from_s + until_s)) {
      parts.timelineLoader.say(element("p", { class: "message-hint" }, "A range of this address is no time. Choose it anew above."));
      return;
    }
    const asked = { from: from_s, until: until_s };
    const state = store.get();
    const service = serviceOfBoth(state);
    const answers = await parts.timelineLoader.run("Reading the timeline", (signal) => Promise.all([
      getJson("series", { query: state.a, ...asked }, signal),
      state.a === state.b ? null : getJson("series", { query: state.b, ...asked }, signal),
      service ? getJson("deploys", { service, ...asked }, signal) : { deploys: [] },
    ]));
    if (!answers) return;
    timeline.setSpans(spans(), active);
    timeline.show({ a: timelineFromSeries(answers[0]), b: answers[1] ? timelineFromSeries(answers[1]) : null });
    timeline.markers.show(answers[2].deploys, store.get());
  };
  const loadTable = async () => {
    const { search, mode, sort } = store.get();
    const asked = { ...sidesAsked(store.get()), search, mode: search && mode === "regex" ? "regex" : "", sort: serverChangedSort(sort), limit: TOP_ROWS, ...operatorParameters(store.get()) };
    const answer = await parts.tableLoader.run("Reading the table", (signal) => getJson("diff/top", asked, signal));
    if (answer) table.show(answer, store.get().sort);
  };
  const showControls = (/** @type {State} */ state) => {
    toolbar.update(state);
    sides.update(state);
    parts.panes.className = `panes is-compare is-${state.shown}`;
    shapes.forEach((tab, at) => {
      const isHere = SHAPES[at].shape === state.shape;
      tab.setAttribute("aria-selected", String(isHere));
      tab.tabIndex = isHere ? 0 : -1;
    });
  };
  parts.retryTable = () => void loadTable();
  parts.retryTimeline = () => void loadTimeline();
  fill(place, parts.head, sides.root, parts.timelinePanel, toolbar.root, parts.panes, parts.keys.root);
  showControls(store.get());
  parts.showActive(active);
  loadTimeline();
  graph.update();
  loadTable();
  return {
    update(state, previous) {
      showControls(state);
      if (hasChanged(state, previous, SIDES)) loadTimeline();
      if (hasChanged(state, previous, GRAPH_KEYS)) graph.update();
      if (hasChanged(state, previous, TOP_KEYS)) loadTable();
      if (hasChanged(state, previous, ["shown"])) graph.flame.invalidate();
    },
    // Two ranges that stand still: there is nothing to follow.
    refresh() {},
    unmount() {
      graph.unmount();
      parts.tableLoader.cancel();
      parts.timelineLoader.cancel();
    },
  };
}

/**
 * All parts of the view, wired to the state; what the view itself knows is filled in by it.
 * @param {Context} context
 */
function makeParts({ store, signal }) {
  const keys = makeKeysDialog();
  const verdict = element("p", { class: "verdict", role: "status" });
  const notes = element("ul", { class: "loss-warnings compare-notes" });
  const details = makeDetails({ close: () => graph.flame.select(-1) });
  const sides = makeCompareSides(store);
  const graph = makeDiffGraph({ store, signal, details, keys }, (answer) => {
    verdict.textContent = answer.a.is_empty && answer.b.is_empty ? "" : verdictWords(answer.changed);
    fill(notes, ...answer.notes.map((/** @type {string} */ note) => element("li", {}, icon("warning"), visibleText(note))));
    sides.show(answer);
    toolbar.share.textContent = searchShare(answer);
  });
  const toolbar = makeGraphToolbar(store, { openKeys: keys.open, nextMatch: (step) => graph.flame.selectMatch(step) });
  const shapes = SHAPES.map(({ shape, label, title }) => element("button", { class: "tab", role: "tab", type: "button", title, onclick: () => store.set({ shape }) }, label));
  const tabs = element("div", { class: "tabs shape-tabs", role: "tablist", "aria-label": "Shape of the graph", onkeydown: (event) => walkTabs(/** @type {KeyboardEvent} */ (event), shapes) }, ...shapes);
  toolbar.root.prepend(tabs);
  const table = makeChangedTable({ sort: (sort) => store.set({ sort }), choose: (row) => showRow(row, { graph, details, store }) });
  const tablePanel = element("section", { class: "card panel top-panel", "aria-label": "Changed functions" },
    element("div", { class: "card-head" }, element("h2", {}, "Changed functions")), element("div", { class: "panel-picture" }, table.root));
  const wider = element("button", { class: "button is-small", type: "button", onclick: () => parts.widen() }, "Wider");
  const choices = /** @type {const} */ (["a", "b"]).map((side) => element("button", { class: "button is-small", type: "button", onclick: () => parts.pick(side) }, `Move ${side.toUpperCase()}`));
  const timeline = makeCompareTimeline({
    choose: (side, range) => store.set(sidePatch(side, range)),
    activate: (side) => parts.activate(side),
    signal,
  });
  const timelinePanel = element("section", { class: "card panel timeline-panel", "aria-label": "Both ranges over time" },
    element("div", { class: "card-head" }, element("h2", {}, "CPU over time"), element("p", { class: "is-quiet card-note" }, "cores · drag a range, its edge, or a new one"),
      element("div", { class: "segments timeline-tools", role: "group", "aria-label": "What a new drag sets" }, ...choices), wider),
    element("div", { class: "panel-picture" }, timeline.root));
  const deploy = makeDeployPicker({ service: () => serviceOfBoth(store.get()), choose: (compared) => store.set({ ...compared, ...NO_RATES, at: "" }) });
  const swap = element("button", { class: "button", type: "button", onclick: () => store.set(swapped(store.get())) }, icon("swap"), "Swap");
  const copyLink = () => copyText(location.origin + addressFromState(store.get()), "Link copied. It keeps both ranges.");
  const link = element("button", { class: "button", type: "button", onclick: copyLink }, icon("link"), "Copy link");
  const head = element("div", { class: "view-head is-compare" }, element("h1", {}, "Compare"), verdict, element("div", { class: "share-menu" }, deploy, swap, link), notes);
  const parts = {
    keys, graph, toolbar, table, timeline, timelinePanel, sides, shapes, head,
    panes: element("div", { class: "panes" }, graph.root, element("div", { class: "side" }, details.root, tablePanel)),
    tableLoader: makeLoader(tablePanel, { retry: () => parts.retryTable() }),
    timelineLoader: makeLoader(timelinePanel, { retry: () => parts.retryTimeline() }),
    showActive: (/** @type {SideName} */ active) => choices.forEach((choice, at) => choice.setAttribute("aria-pressed", String((at === 0 ? "a" : "b") === active))),
    pick: (/** @type {SideName} */ side) => {
      parts.activate(side);
      const spanOf = (/** @type {SideName} */ each) => spanOfSide(sideOf(store.get(), each), nowS());
      timeline.setSpans({ a: spanOf("a"), b: spanOf("b") }, side);
    },
    activate: (/** @type {SideName} */ _side) => {},
    widen() {},
    retryTable() {},
    retryTimeline() {},
  };
  return parts;
}

/** @param {DiffAnswer} answer */
function searchShare({ search }) {
  if (!search) return "";
  return search.matched_total === 0 ? `nothing matches “${visibleText(search.text)}”` : `${formatShare(search.share)} of the picture matches`;
}

/**
 * @param {import("../net/api.js").ChangedRow} row
 * @param {{graph: ReturnType<typeof makeDiffGraph>, details: ReturnType<typeof makeDetails>, store: import("../state/store.js").Store}} parts
 */
function showRow(row, { graph, details, store }) {
  const [name, binary] = [visibleText(row.name), visibleText(row.binary)];
  graph.flame.mark(name, binary);
  const answer = graph.shown()?.answer;
  const words = { name, binary, file: "", line: 0, code: row.code, lines: changeLines(changeOfRow(row), answer ? requestsOf(answer) : null) };
  details.show(words, [{ label: "Search for it", run: () => store.set({ search: row.name, mode: "text" }) }, ...frameActions(store, row.name)]);
}

/**
 * Arrows go from tab to tab, as in every tab list.
 * @param {KeyboardEvent} event
 * @param {HTMLElement[]} tabs
 */
function walkTabs(event, tabs) {
  const step = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
  const at = tabs.indexOf(/** @type {HTMLElement} */ (document.activeElement));
  if (step === 0 || at < 0) return;
  event.preventDefault();
  const next = tabs[(at + step + tabs.length) % tabs.length];
  next.focus();
  next.click();
}
