// SPDX-License-Identifier: Apache-2.0
/**
 * The graph with what belongs to it: reads the tree for the address, keeps the latest few, brings detail when the reader zooms,
 * and says in words what is searched, zoomed, empty or wrong.
 */

import { operatorParameters } from "../core/operators.js";
import { visibleText } from "../core/text.js";
import { nodeOfId, treeFromAnswer } from "../core/tree.js";
import { NS_PER_S, formatCores, formatDuration, formatShare } from "../core/units.js";
import { ApiError, apiAddress, getColumns } from "../net/api.js";
import { makeAnswers } from "../net/answers.js";
import { element, fill, icon } from "./dom.js";
import { FlameGraph } from "./flame-graph.js";
import { emptyGraphWords } from "./empty-graph.js";
import { makeLoader } from "./loader.js";

/**
 * @typedef {import("../core/route.js").State} State
 * @typedef {import("../core/tree.js").FlamegraphAnswer} FlamegraphAnswer
 * @typedef {import("../core/tree.js").Tree} Tree
 * @typedef {{answer: any, tree: Tree}} Kept
 * @typedef {Record<string, string>} Selection parameters that say what is looked at; names are the API's
 * @typedef {{
 *   endpoint: string, title: string, look?: import("./flame-graph.js").Look,
 *   pin: (answer: any) => Selection, treeOf: (answer: any, asked: import("../net/api.js").Parameters) => Tree,
 *   rootLabel: (answer: any) => string, summary: (answer: any, state: State) => string,
 *   emptyWords: (answer: any, store: import("../state/store.js").Store) => Node[],
 * }} Source where trees come from and what is said of them; `pin` gives the parameters that keep later readings on the same samples
 */

const KEPT_TREES = 8;
/** How much finer a tree is asked for when trimmed frames are opened where they already stand under the root. */
const FINER = 12;
const WIDEST_PX = 10_000;
const HOLD_MS = 500;

/** One selection, by kind of code. @type {Readonly<Source>} */
const FLAMEGRAPH = Object.freeze({
  endpoint: "flamegraph",
  title: "Flame graph",
  pin: (answer) => ({ from: String(answer.from_s), until: String(answer.until_s) }),
  treeOf: (answer, asked) => treeFromAnswer(answer, { hasThreads: asked.group !== "" }),
  rootLabel(answer) {
    const cores = formatCores(answer.total / NS_PER_S / Math.max(answer.seconds, 1e-9));
    return `all · ${formatDuration(answer.total)} of CPU · ${cores}`;
  },
  summary(answer, state) {
    const share = answer.total > 0 ? answer.view_total / answer.total : 0;
    if (state.at === "") return `${formatDuration(answer.total)} of CPU`;
    return `${formatDuration(answer.view_total)} of CPU, ${formatShare(share)} of ${formatDuration(answer.total)}`;
  },
  emptyWords: emptyGraphWords,
});

/**
 * @param {{
 *   store: import("../state/store.js").Store, signal: AbortSignal, selection: () => Selection, source?: Source,
 *   onAnswer: (answer: any) => void, onSelect: (node: number) => void, onKey: (key: string) => void,
 * }} options
 */
export function makeGraphPanel({ store, signal, selection, source = FLAMEGRAPH, onAnswer, onSelect, onKey }) {
  /** @type {import("../net/answers.js").Kept<Kept>} */
  const kept = makeAnswers(KEPT_TREES);
  /** Where the reader was before each zoom. @type {string[]} */
  const trail = [];
  /** Range of the last answer: zooming and searching must look at the same samples. @type {Selection | null} */
  let pinned = null;
  /** @type {Kept | null} */
  let shown = null;
  let shownSelection = "";
  let finer = 1;
  let holding = 0;

  const zoom = (/** @type {string} */ at) => {
    if (at === store.get().at) return;
    trail.push(store.get().at);
    finer = 1;
    store.set({ at });
  };
  const back = () => {
    const at = trail.pop() ?? "";
    finer = 1;
    store.set({ at });
  };
  const flame = new FlameGraph({
    zoom: (id) => zoom(id === 0 ? "" : String(id)),
    trimmed(parentId) {
      const isRoot = flame.tree !== null && nodeOfId(flame.tree, parentId) === 0;
      if (!isRoot) return zoom(String(parentId));
      finer *= FINER;
      return load();
    },
    select: onSelect,
    back,
    key: onKey,
  }, signal, source.look);
  const summary = element("p", { class: "graph-summary" });
  const upButton = element("button", { class: "button is-small", type: "button", onclick: () => zoom("") }, "Show all");
  const backButton = element("button", { class: "button is-small", type: "button", onclick: back }, icon("back"), "Back");
  const head = element("div", { class: "card-head" }, element("h2", {}, source.title), summary, backButton, upButton);
  const picture = element("div", { class: "panel-picture" }, flame.root);
  const root = element("section", { class: "card panel graph", "aria-label": source.title }, head, picture);
  const loader = makeLoader(root, { retry: () => load() });

  const parameters = () => {
    const state = store.get();
    const shown_px = Math.round(flame.scroller.clientWidth || root.clientWidth || 1200);
    const width_px = Math.min(WIDEST_PX, Math.max(320, shown_px) * finer);
    const mode = state.search && state.mode === "regex" ? "regex" : "";
    return { ...selection(), ...pinned, width_px, at: state.at, search: state.search, mode, ...operatorParameters(state) };
  };
  const show = (/** @type {Kept} */ next) => {
    const { answer, tree } = next;
    const state = store.get();
    shown = next;
    picture.hidden = answer.total === 0;
    if (answer.total === 0) {
      loader.say(...source.emptyWords(answer, store));
    } else {
      loader.clear();
      const focusId = state.at === "" ? tree.id[0] : Number(state.at);
      flame.setTree(tree, { focusId, rootLabel: source.rootLabel(answer), isMinimapKept: state.at !== "" && tree.ancestors.length > 0 });
    }
    const isZoomed = state.at !== "";
    upButton.hidden = !isZoomed;
    backButton.hidden = !isZoomed;
    summary.textContent = source.summary(answer, state);
    onAnswer(answer);
  };
  upButton.hidden = true;
  backButton.hidden = true;
  /** @param {{isRefresh?: boolean}} [how] */
  const load = async ({ isRefresh = false } = {}) => {
    if (isRefresh) {
      pinned = null;
      kept.clear();
    }
    const asked = parameters();
    const key = apiAddress(source.endpoint, asked);
    const known = kept.get(key);
    if (known) {
      loader.cancel();
      show(known);
      return;
    }
    const isDetail = zoomAhead(asked.at);
    const what = asked.at ? "Reading the frame in full" : "Reading and adding up the stacks";
    const reading = loader.run(what, (signal) => readAnswer(source.endpoint, asked, signal), { isQuiet: isRefresh || isDetail });
    flame.prepare();
    const answer = await reading;
    if (!answer) return;
    const next = { answer, tree: source.treeOf(answer, asked) };
    pinned ??= source.pin(answer);
    kept.put(key, next);
    if (isRefresh) showWhenIdle(next);
    else show(next);
  };
  /** New numbers must not move what is being read: they wait until the pointer has left. @param {Kept} next */
  const showWhenIdle = (next) => {
    clearTimeout(holding);
    if (!flame.isBeingRead()) show(next);
    else holding = window.setTimeout(() => showWhenIdle(next), HOLD_MS);
  };
  /** Zoom in the tree at hand, while the finer one is read. @param {string} at @returns {boolean} whether it could */
  const zoomAhead = (at) => {
    if (!shown || at === "" || flame.tree !== shown.tree) return false;
    const node = nodeOfId(shown.tree, Number(at));
    if (node >= 0) flame.showNode(node);
    return node >= 0;
  };
  return {
    root,
    flame,
    update() {
      const now = Object.values(selection()).join("\n");
      clearTimeout(holding);
      if (now !== shownSelection) {
        pinned = null;
        finer = 1;
        trail.length = shownSelection === "" ? 0 : trail.length;
      }
      shownSelection = now;
      load();
    },
    refresh: () => load({ isRefresh: true }),
    shown: () => shown,
    address: (/** @type {string} */ format) => {
      return apiAddress(source.endpoint, { ...selection(), ...pinned, ...operatorParameters(store.get()), format });
    },
    pinnedRange: () => pinned,
    unmount() {
      clearTimeout(holding);
      loader.cancel();
    },
  };
}

/**
 * @param {string} endpoint
 * @param {import("../net/api.js").Parameters} asked
 * @param {AbortSignal} signal
 * @returns {Promise<any>}
 */
async function readAnswer(endpoint, asked, signal) {
  try {
    return await getColumns(endpoint, asked, signal);
  } catch (error) {
    if (!(error instanceof ApiError) || error.status !== 404 || asked.at === "") throw error;
    const { address, status } = error;
    throw new ApiError("The frame of this link has no samples in this range.", { hint: "Press Home in the graph, or widen the range.", address, status });
  }
}

/**
 * What is searched, in words, with the server's share.
 * @param {FlamegraphAnswer} answer
 */
export function searchWords({ search }) {
  if (!search) return "";
  if (search.matched_total === 0) return `nothing matches “${visibleText(search.text)}”`;
  return `${formatShare(search.share)} matches · ${formatDuration(search.matched_total)}`;
}

/**
 * @param {HTMLElement} place
 * @param {FlamegraphAnswer | null} answer
 */
export function showSearchWords(place, answer) {
  fill(place, answer ? searchWords(answer) : "");
}
