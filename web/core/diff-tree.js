// SPDX-License-Identifier: Apache-2.0
/** A diff's tree: that of a flame graph, coloured by change, with both sides of every frame beside it. */

import { COLOUR_ROOT, COLOUR_TRIMMED, STEPS } from "./colour.js";
import { DIFF_NOISE, diffColourIndex } from "./diff-colour.js";
import { INLINED_LINE } from "./frame-words.js";
import { FUNCTION_ROOT, FUNCTION_TRIMMED, columnOf, nodeName, treeFromAnswer } from "./tree.js";
import { changeSign, formatPoints, intervalWords, requestWords, requestsOf, stateOfChange, stateWords } from "./diff-words.js";
import { formatDuration, formatShare } from "./units.js";

/**
 * @typedef {import("./tree.js").Tree} Tree
 * @typedef {{query: string, from_s: number, until_s: number, seconds: number, total: number, samples: number, hosts: number,
 *   replicates: number, is_empty: boolean, per: import("./diff-words.js").Per, quality: import("./quality.js").Quality}} DiffSide
 * @typedef {import("./tree.js").Column} Column
 * @typedef {{a_total: Column, b_total: Column, a_share: Column, b_share: Column, change: Column, low: Column,
 *   high: Column, is_noise: Column}} DiffColumns
 * @typedef {import("./tree.js").FlamegraphAnswer & {a: DiffSide, b: DiffSide, changed: {beyond_noise: number, frames: number},
 *   notes: string[], nodes: DiffColumns}} DiffAnswer
 * @typedef {Tree & {aTotal: Float64Array, bTotal: Float64Array, aShare: Float64Array, bShare: Float64Array, change: Float64Array,
 *   low: Float64Array, high: Float64Array, isNoise: Uint8Array, requests: {a: number, b: number} | null}} DiffTree
 */

/**
 * @param {DiffAnswer} answer
 * @returns {DiffTree}
 */
export function diffTreeFromAnswer(answer) {
  const { nodes } = answer;
  const tree = {
    ...treeFromAnswer(answer),
    aTotal: columnOf(Float64Array, nodes.a_total),
    bTotal: columnOf(Float64Array, nodes.b_total),
    aShare: columnOf(Float64Array, nodes.a_share),
    bShare: columnOf(Float64Array, nodes.b_share),
    change: columnOf(Float64Array, nodes.change),
    low: Float64Array.from(nodes.low),
    high: Float64Array.from(nodes.high),
    isNoise: columnOf(Uint8Array, nodes.is_noise),
    requests: requestsOf(answer),
  };
  tree.ancestorColour = tree.ancestors.map((_, at) => (at === 0 ? COLOUR_ROOT : DIFF_NOISE * STEPS));
  for (let node = 0; node < tree.count; node += 1) {
    const at = tree.functionOf[node];
    if (at >= 0) tree.colour[node] = diffColourIndex(changeOf(tree, node));
    else tree.colour[node] = at === FUNCTION_ROOT ? COLOUR_ROOT : COLOUR_TRIMMED;
  }
  return tree;
}

/**
 * @param {DiffTree} tree
 * @param {number} node
 * @returns {import("./diff-words.js").Change}
 */
export function changeOf(tree, node) {
  return {
    change: tree.change[node],
    low: tree.low[node],
    high: tree.high[node],
    isNoise: tree.isNoise[node] === 1,
    aTotal: tree.aTotal[node],
    bTotal: tree.bTotal[node],
  };
}

/**
 * What is said of a frame of a diff: both shares, the change with its interval, and what it amounts to, in words.
 * @param {DiffTree} tree
 * @param {number} node
 * @returns {import("./frame-words.js").FrameWords}
 */
export function diffFrameWords(tree, node) {
  const at = tree.functionOf[node];
  const { binary, file, line, code, builds } = at >= 0 ? tree.functions[at] : { binary: "", file: "", line: 0, code: -1, builds: [] };
  const shares = { aShare: tree.aShare[node], bShare: tree.bShare[node] };
  const lines = changeLines({ ...changeOf(tree, node), ...shares }, tree.requests);
  if (at === FUNCTION_TRIMMED) {
    // Frames that are hidden together have no interval of their own.
    const hidden = tree.isNoise[node] ? "all within noise" : "some beyond noise: zoom in to see them";
    lines.splice(2, 2, ["change", `${formatPoints(tree.change[node])} points`], ["that is", hidden]);
  }
  if (tree.inlined[node]) lines.push(INLINED_LINE);
  return { name: nodeName(tree, node), binary, file, line, code, builds, lines };
}

/**
 * @param {import("./diff-words.js").Change & {aShare: number, bShare: number}} change
 * @param {{a: number, b: number} | null} requests
 * @returns {Array<[string, string]>}
 */
export function changeLines(change, requests) {
  const side = (/** @type {number} */ share, /** @type {number} */ total) => `${formatShare(share)} · ${formatDuration(total)}`;
  return [
    ["in A", side(change.aShare, change.aTotal)],
    ["in B", side(change.bShare, change.bTotal)],
    ["change", `${formatPoints(change.change)} points (95 %: ${intervalWords(change.low, change.high)})`],
    ["that is", stateWords(stateOfChange(change))],
    ...(requests ? [/** @type {[string, string]} */ (["that takes", requestWords(change, requests)])] : []),
  ];
}

/**
 * The sign that stands on a frame, and the number with it where there is room; "" for noise and for what is no code.
 * @param {DiffTree} tree
 * @param {number} node
 * @returns {{short: string, long: string}}
 */
export function frameMark(tree, node) {
  if (tree.functionOf[node] < 0 || tree.isNoise[node] || tree.change[node] === 0) return { short: "", long: "" };
  const state = stateOfChange(changeOf(tree, node));
  const word = state === "new" ? "new " : state === "vanished" ? "gone " : "";
  return { short: changeSign(tree.change[node]), long: `${word}${formatPoints(tree.change[node])}` };
}

/**
 * One sentence for a reader who hears the graph.
 * @param {DiffTree} tree
 * @param {number} node
 */
export function spokenDiffFrame(tree, node) {
  const words = diffFrameWords(tree, node);
  const lines = words.lines.map(([label, value]) => `${label} ${value.replaceAll(" · ", ", ")}`).join("; ");
  return `${words.name}${words.binary ? ` in ${words.binary}` : ""}; ${lines}; depth ${tree.depth[node] + tree.ancestors.length}`;
}
