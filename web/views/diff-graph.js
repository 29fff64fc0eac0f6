// SPDX-License-Identifier: Apache-2.0
/** The graph of a comparison: three shapes, coloured by change, with the keys and actions of every graph. */

import { DIFF_KINDS } from "../core/diff-colour.js";
import { diffFrameWords, diffTreeFromAnswer, frameMark, spokenDiffFrame } from "../core/diff-tree.js";
import { spentWords } from "../core/kinds.js";
import { formatDuration, formatShare } from "../core/units.js";
import { diffColours } from "../draw/flame-colours.js";
import { element } from "./dom.js";
import { frameActions, nameOfNode, takeFrameKey } from "./frame-actions.js";
import { makeGraphPanel } from "./graph-panel.js";

/**
 * @typedef {import("../core/route.js").State} State
 * @typedef {import("../core/compare.js").Shape} Shape
 * @typedef {import("../core/diff-tree.js").DiffAnswer} DiffAnswer
 * @typedef {import("./fleet.js").Context} Context
 */

/** @type {ReadonlyArray<{shape: Shape, label: string, title: string}>} */
export const SHAPES = [
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

/** Parameters of the API that say what is compared. @param {State} state */
export function sidesAsked(state) {
  const { a, aFrom, aUntil, aRate, b, bFrom, bUntil, bRate, idle } = state;
  return { a, a_from: aFrom, a_until: aUntil, a_rate: aRate, b, b_from: bFrom, b_until: bUntil, b_rate: bRate, idle: a.startsWith("offcpu") ? idle : "" };
}

/**
 * @param {Context & {details: ReturnType<typeof import("./details.js").makeDetails>, keys: ReturnType<typeof import("./keys-dialog.js").makeKeysDialog>}} context
 * @param {(answer: DiffAnswer) => void} onAnswer
 */
export function makeDiffGraph({ store, signal, details, keys }, onAnswer) {
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
      if (!takeFrameKey(store, key, nameOfNode(graph.flame.tree, graph.flame.selected))) keys.open();
    },
    onAnswer,
    onSelect(node) {
      const tree = /** @type {import("../core/diff-tree.js").DiffTree | null} */ (graph.flame.tree);
      if (!tree || node < 0) return details.hide();
      const words = diffFrameWords(tree, node);
      const find = { label: "Search for it", run: () => store.set({ search: words.name, mode: "text" }) };
      return details.show(words, tree.functionOf[node] >= 0 ? [{ label: "Zoom to it", run: () => graph.flame.zoomTo(node) }, find, ...frameActions(store, nameOfNode(tree, node))] : []);
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
