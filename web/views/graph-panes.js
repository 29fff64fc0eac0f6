// SPDX-License-Identifier: Apache-2.0
/** A graph with its toolbar, its table of functions and the details of what was chosen, read for one selection. */

import { frameWords, weightLines } from "../core/frame-words.js";
import { OPERATOR_KEYS, operatorParameters } from "../core/operators.js";
import { visibleText } from "../core/text.js";
import { getJson } from "../net/api.js";
import { makeDetails } from "./details.js";
import { element } from "./dom.js";
import { frameActions, nameOfNode, takeFrameKey } from "./frame-actions.js";
import { makeGraphPanel, showSearchWords } from "./graph-panel.js";
import { makeGraphToolbar } from "./graph-toolbar.js";
import { makeKeysDialog } from "./keys-dialog.js";
import { makeLoader } from "./loader.js";
import { makeNameWatch } from "./name-watch.js";
import { makeTopTable, serverSort } from "./top-table.js";

/**
 * @typedef {import("../core/route.js").State} State
 * @typedef {import("./fleet.js").Context} Context
 * @typedef {import("../net/api.js").TopRow} TopRow
 * @typedef {Record<string, string>} Selection parameters of the API that say what is looked at
 */

const TOP_ROWS = 200;
const GRAPH_KEYS = /** @type {const} */ (["at", "search", "mode", ...OPERATOR_KEYS]);
const TOP_KEYS = /** @type {const} */ (["search", "mode", "sort", ...OPERATOR_KEYS]);

/**
 * @param {State} state
 * @param {State} previous
 * @param {readonly (keyof State)[]} keys
 */
export function hasChanged(state, previous, keys) {
  return keys.some((key) => String(state[key]) !== String(previous[key]));
}

/**
 * @param {Context} context
 * @param {{
 *   selection: () => Selection, selectionKeys: readonly (keyof State)[], onAnswer: (answer: any) => void,
 *   source?: import("./graph-panel.js").Source, side?: HTMLElement, tools?: HTMLElement[],
 * }} asked `selectionKeys` are the fields of the state that the selection is made of; `side` stands before the graph instead of the
 *   table of functions; `tools` stand in the toolbar
 */
export function makeGraphPanes({ store, signal }, { selection, selectionKeys, onAnswer, source, side, tools = [] }) {
  const keys = makeKeysDialog();
  const details = makeDetails({ close: () => graph.flame.select(-1) });
  const onKey = (/** @type {string} */ key) => {
    if (!takeFrameKey(store, key, nameOfNode(graph.flame.tree, graph.flame.selected))) keys.open();
  };
  const graph = makeGraphPanel({
    store,
    signal,
    selection,
    source,
    onKey,
    onAnswer(answer) {
      onAnswer(answer);
      names.saw(answer.quality?.naming);
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
    return details.show(words, tree.functionOf[node] >= 0 ? [{ label: "Zoom to it", run: () => graph.flame.zoomTo(node) }, find, ...frameActions(store, nameOfNode(tree, node))] : []);
  };
  const showFunction = (/** @type {TopRow} */ row) => {
    const total = graph.shown()?.answer.total ?? 0;
    const name = visibleText(row.name);
    const binary = visibleText(row.binary);
    graph.flame.mark(name, binary);
    const lines = weightLines({ self: row.self, total: row.total, viewTotal: total, selectionTotal: total });
    const words = { name, binary, file: visibleText(row.file), line: row.line, code: row.code, builds: row.builds, lines };
    details.show(words, [{ label: "Search for it", run: () => store.set({ search: row.name, mode: "text" }) }, ...frameActions(store, row.name)]);
  };
  const top = makeTopTable({ sort: (sort) => store.set({ sort }), choose: showFunction });
  const topPanel = element("section", { class: "card panel top-panel", "aria-label": "Functions" },
    element("div", { class: "card-head" }, element("h2", {}, "Functions")), element("div", { class: "panel-picture" }, top.root));
  const topLoader = makeLoader(topPanel, { retry: () => loadTop(false) });
  const loadTop = async (/** @type {boolean} */ isQuiet) => {
    const { search, mode, sort } = store.get();
    // Turned, a function's time would be that of its callers.
    const operators = { ...operatorParameters(store.get()), invert: "", group: "" };
    const asked = { ...selection(), search, mode: search ? mode : "", sort: serverSort(sort), limit: TOP_ROWS, ...operators };
    if (side) return;
    const answer = await topLoader.run("Reading the table", (signal) => getJson("top", asked, signal), { isQuiet });
    if (answer) top.show(answer, store.get().sort);
  };
  const refresh = () => {
    graph.refresh();
    loadTop(true);
  };
  const names = makeNameWatch(refresh);
  const panes = element("div", {}, graph.root, element("div", { class: "side" }, details.root, side ?? topPanel));
  toolbar.addTools(tools);
  const showControls = (/** @type {State} */ state) => {
    toolbar.update(state);
    panes.className = `panes is-${state.shown}${side ? " has-objects" : ""}`;
  };
  return {
    graph,
    toolbar,
    panes,
    dialog: keys.root,
    /** Read all of it for the first time. */
    start() {
      showControls(store.get());
      graph.update();
      loadTop(false);
    },
    /** @param {State} state @param {State} previous */
    update(state, previous) {
      showControls(state);
      if (hasChanged(state, previous, [...selectionKeys, ...GRAPH_KEYS])) graph.update();
      if (hasChanged(state, previous, [...selectionKeys, ...TOP_KEYS])) loadTop(false);
      if (hasChanged(state, previous, ["shown"])) graph.flame.invalidate();
    },
    refresh,
    unmount() {
      names.stop();
      graph.unmount();
      details.hide();
      topLoader.cancel();
    },
  };
}
