// SPDX-License-Identifier: Apache-2.0
/** Two sides compared: ranges on one timeline, the graph coloured by change in three shapes, the functions that changed. */

import { comparisonBefore, hasSides, sideOf, sidePatch, spanOfBoth, spanOfSide, swapped } from "../core/compare.js";
import { DIFF_KINDS } from "../core/diff-colour.js";
import { changeLines, diffFrameWords, diffTreeFromAnswer, frameMark, spokenDiffFrame } from "../core/diff-tree.js";
import { verdictWords } from "../core/diff-words.js";
import { spentWords } from "../core/kinds.js";
import { OPERATOR_KEYS, operatorParameters } from "../core/operators.js";
import { resolveRange } from "../core/range.js";
import { addressFromState, stateOfComparison, stateOfView } from "../core/route.js";
import { labelsOfSelector } from "../core/selector.js";
import { visibleText } from "../core/text.js";
import { formatDuration, formatShare } from "../core/units.js";
import { diffColours } from "../draw/flame-colours.js";
import { timelineFromSeries } from "../draw/timeline-painter.js";
import { getJson } from "../net/api.js";
import { changeOfRow, makeChangedTable, serverChangedSort } from "./changed-table.js";
import { makeCompareSides } from "./compare-sides.js";
import { makeCompareTimeline } from "./compare-timeline.js";
import { makeDetails } from "./details.js";
import { copyText, element, fill, icon } from "./dom.js";
import { makeGraphPanel } from "./graph-panel.js";
import { makeGraphToolbar } from "./graph-toolbar.js";
import { makeKeysDialog } from "./keys-dialog.js";
import { makeLoader } from "./loader.js";

/**
 * @typedef {import("../core/route.js").State} State
 * @typedef {import("../core/compare.js").SideName} SideName
 * @typedef {import("../core/compare.js").Shape} Shape
 * @typedef {import("../core/diff-tree.js").DiffAnswer} DiffAnswer
 * @typedef {import("./fleet.js").Context} Context
 * @typedef {import("./fleet.js").View} View
 */

const TOP_ROWS = 200;
const SIDES = /** @type {const} */ (["a", "aFrom", "aUntil", "b", "bFrom", "bUntil"]);
const GRAPH_KEYS = /** @type {const} */ ([...SIDES, "shape", "at", "search", "mode", ...OPERATOR_KEYS]);
const TOP_KEYS = /** @type {const} */ ([...SIDES, "search", "mode", "sort", ...OPERATOR_KEYS]);
/** @type {ReadonlyArray<{shape: Shape, label: string, title: string}>} */
const SHAPES = [
  { shape: "b", label: "Shaped by B", title: "widths are shares of B; what is gone is not seen" },
  { shape: "a", label: "Shaped by A", title: "widths are shares of A; what is new is not seen" },
  { shape: "union", label: "Union", title: "widths are the larger share; what is new and what is gone are both seen" },
];

/** @type {Readonly<import("./flame-graph.js").Look>} */
const DIFF_LOOK = Object.freeze({
  colours: diffColours,
  words: diffFrameWords,
  spoken: spokenDiffFrame,
  markOf: frameMark,
  kinds: DIFF_KINDS.map(({ key, label }) => ({ key: `diff-${key}`, label })),
  legendLabel: "What the colours mean",
});

const nowS = () => Date.now() / 1000;

/** @param {State} state */
function sidesAsked(state) {
  const { a, aFrom, aUntil, b, bFrom, bUntil, idle } = state;
  return { a, a_from: aFrom, a_until: aUntil, b, b_from: bFrom, b_until: bUntil, idle: a.startsWith("offcpu") ? idle : "" };
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
    const services = [state.a, state.b].map((query) => labelsOfSelector(query)?.labels.service ?? []);
    const service = String(services[0]) === String(services[1]) && services[0].length === 1 ? services[0][0] : "";
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
  const swap = element("button", { class: "button", type: "button", onclick: () => store.set(swapped(store.get())) }, icon("swap"), "Swap");
  const copyLink = () => copyText(location.origin + addressFromState(store.get()), "Link copied. It keeps both ranges.");
  const link = element("button", { class: "button", type: "button", onclick: copyLink }, icon("link"), "Copy link");
  const head = element("div", { class: "view-head is-compare" }, element("h1", {}, "Compare"), verdict, element("div", { class: "share-menu" }, swap, link), notes);
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

/**
 * @param {Context & {details: ReturnType<typeof makeDetails>, keys: ReturnType<typeof makeKeysDialog>}} context
 * @param {(answer: DiffAnswer) => void} onAnswer
 */
function makeDiffGraph({ store, signal, details, keys }, onAnswer) {
  const graph = makeGraphPanel({
    store,
    signal,
    selection: () => ({ ...sidesAsked(store.get()), shape: store.get().shape }),
    source: {
      endpoint: "diff",
      title: "What changed",
      look: DIFF_LOOK,
      // The ranges of a comparison stand still.
      pin: () => ({}),
      treeOf: (answer) => diffTreeFromAnswer(answer),
      rootLabel: ({ a, b }) => `all · ${formatDuration(a.total)} ${spentWords(a.query)} in A · ${formatDuration(b.total)} in B`,
      summary: (answer, state) => (state.at === "" ? shapeWords(state) : zoomWords(answer)),
      emptyWords: emptyDiffWords,
    },
    onKey(key) {
      if (key === "t") store.set({ shown: store.get().shown === "table" ? "both" : "table" });
      else if (key === "i") store.set({ invert: !store.get().invert, at: "" });
      else keys.open();
    },
    onAnswer,
    onSelect(node) {
      const tree = /** @type {import("../core/diff-tree.js").DiffTree | null} */ (graph.flame.tree);
      if (!tree || node < 0) return details.hide();
      const words = diffFrameWords(tree, node);
      const find = { label: "Search for it", run: () => store.set({ search: words.name, mode: "text" }) };
      return details.show(words, tree.functionOf[node] >= 0 ? [{ label: "Zoom to it", run: () => graph.flame.zoomTo(node) }, find] : []);
    },
  });
  return graph;
}

/** @param {State} state */
function shapeWords({ shape }) {
  return SHAPES.find((each) => each.shape === shape)?.title ?? "";
}

/** The frame that fills the view. @param {DiffAnswer} answer */
function zoomWords({ nodes }) {
  return `${formatShare(nodes.a_share[0])} of A, ${formatShare(nodes.b_share[0])} of B`;
}

/** @param {DiffAnswer} answer */
function searchShare({ search }) {
  if (!search) return "";
  return search.matched_total === 0 ? `nothing matches “${visibleText(search.text)}”` : `${formatShare(search.share)} of the picture matches`;
}

/**
 * A shape whose side is empty; the other side may hold something.
 * @param {DiffAnswer} answer
 * @param {import("../state/store.js").Store} store
 * @returns {Node[]}
 */
function emptyDiffWords({ a, b }, store) {
  if (a.is_empty && b.is_empty) {
    return [
      element("p", { class: "message-title" }, "Both sides are empty."),
      element("p", { class: "message-hint" }, "No sample of either selector lies in its range. Choose other ranges on the timeline, or other services."),
    ];
  }
  const [empty, other] = a.is_empty ? ["A", "B"] : ["B", "A"];
  const look = () => store.set({ shape: a.is_empty ? "b" : "a", at: "" });
  return [
    element("p", { class: "message-title" }, `Side ${empty} is empty.`),
    element("p", { class: "message-hint" }, `No sample of its selector lies in its range, so there is nothing to shape the graph by.`),
    element("p", { class: "message-actions" }, element("button", { class: "button is-primary", type: "button", onclick: look }, `Shape it by ${other}`)),
  ];
}

/**
 * @param {import("../net/api.js").ChangedRow} row
 * @param {{graph: ReturnType<typeof makeGraphPanel>, details: ReturnType<typeof makeDetails>, store: import("../state/store.js").Store}} parts
 */
function showRow(row, { graph, details, store }) {
  const [name, binary] = [visibleText(row.name), visibleText(row.binary)];
  graph.flame.mark(name, binary);
  const words = { name, binary, file: "", line: 0, code: row.code, lines: changeLines(changeOfRow(row)) };
  details.show(words, [{ label: "Search for it", run: () => store.set({ search: row.name, mode: "text" }) }]);
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
