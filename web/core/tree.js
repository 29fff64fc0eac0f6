// SPDX-License-Identifier: Apache-2.0
/**
 * A flame graph's tree as columns of typed arrays, made once from the API's answer.
 *
 * Nodes are in preorder (node 0 is the root), so the nodes of one depth are sorted by start and do not overlap. `rowNodes` lists
 * them depth by depth; the nodes of depth d are rowNodes[rowOffsets[d]] up to rowNodes[rowOffsets[d + 1]]. All walks are loops:
 * a stack may be 30,000 frames deep.
 */

import { COLOUR_ROOT, COLOUR_TRIMMED, KIND_UNKNOWN, colourIndex } from "./colour.js";
import { visibleTexts } from "./text.js";

export const FUNCTION_TRIMMED = -1;
export const FUNCTION_ROOT = -2;

/**
 * @typedef {ArrayLike<number> & Iterable<number>} Column a list, or already an array of numbers
 * @typedef {{name: string, binary: string, id: number, total: number, code?: number}} Ancestor
 * @typedef {{
 *   column: string, unit: string, from_s: number, until_s: number, seconds: number, total: number, view_total: number, samples: number,
 *   strings: string[],
 *   functions: {name: Column, binary: Column, file: Column, line: Column, code: Column, builds?: number[][]},
 *   nodes: {function: Column, depth: Column, start: Column, total: Column, self: Column, id: Column, trimmed: Column,
 *     matched?: Column, inlined?: Column},
 *   ancestors?: Ancestor[],
 *   search: {text: string, matched_total: number, share: number} | null,
 *   quality: import("./quality.js").Quality,
 *   trimmed: {frames: number, share: number},
 *   nearest_data_s: number | null,
 * }} FlamegraphAnswer
 * @typedef {{name: string, binary: string, file: string, line: number, code: number, builds: string[], colour: number}} FunctionInfo
 * @typedef {{
 *   count: number, depthCount: number, functionOf: Int32Array, depth: Int32Array, parent: Int32Array,
 *   start: Float64Array, total: Float64Array, self: Float64Array, id: Float64Array, trimmed: Int32Array, matched: Uint8Array | null,
 *   inlined: Uint8Array,
 *   colour: Uint8Array, rowOffsets: Uint32Array, rowNodes: Uint32Array, functions: FunctionInfo[], ancestors: Ancestor[],
 *   ancestorColour: number[], selectionTotal: number,
 * }} Tree
 */

/** Code of a frame that is no code at all: a thread's name above its frames. */
export const CODE_NONE = -1;

/**
 * @param {FlamegraphAnswer} answer
 * @param {{hasThreads?: boolean}} [how] with threads their names come without binary and stand above the frames
 * @returns {Tree}
 */
export function treeFromAnswer(answer, { hasThreads = false } = {}) {
  const { nodes } = answer;
  const functions = functionsFromAnswer(answer, hasThreads);
  const depth = columnOf(Int32Array, nodes.depth);
  const functionOf = columnOf(Int32Array, nodes.function);
  return {
    count: depth.length,
    functionOf,
    depth,
    start: columnOf(Float64Array, nodes.start),
    total: columnOf(Float64Array, nodes.total),
    self: columnOf(Float64Array, nodes.self),
    id: columnOf(Float64Array, nodes.id),
    trimmed: columnOf(Int32Array, nodes.trimmed),
    matched: answer.search && nodes.matched ? columnOf(Uint8Array, nodes.matched) : null,
    inlined: nodes.inlined ? columnOf(Uint8Array, nodes.inlined) : new Uint8Array(depth.length),
    parent: parentsFromDepths(depth),
    colour: coloursOfNodes(functionOf, functions),
    functions,
    ancestors: answer.ancestors ?? [],
    ancestorColour: (answer.ancestors ?? []).map(colourOfAncestor),
    selectionTotal: answer.total,
    ...rowsFromDepths(depth),
  };
}

/**
 * A column as an array of a type; itself when it is one.
 * @template {Float64Array | Int32Array | Uint8Array} T
 * @param {{new (...given: any[]): T, from: (column: Column) => T}} type
 * @param {Column} column
 * @returns {T}
 */
export function columnOf(type, column) {
  return column instanceof type ? column : type.from(column);
}

/**
 * @param {FlamegraphAnswer} answer
 * @param {boolean} hasThreads
 * @returns {FunctionInfo[]}
 */
function functionsFromAnswer({ strings, functions }, hasThreads) {
  const shown = visibleTexts(strings);
  return Array.from(functions.name, (nameAt, at) => {
    const name = shown[nameAt] ?? "";
    const binary = shown[functions.binary[at]] ?? "";
    const told = functions.code[at] ?? KIND_UNKNOWN;
    const isThread = hasThreads && told === KIND_UNKNOWN && binary === "" && !name.startsWith("[");
    const code = isThread ? CODE_NONE : told;
    const file = shown[functions.file[at]] ?? "";
    const builds = (functions.builds?.[at] ?? []).map((build) => shown[build] ?? "");
    return { name, binary, file, line: functions.line[at] ?? 0, code, builds, colour: isThread ? COLOUR_ROOT : colourIndex(name, binary, code) };
  });
}

/**
 * @param {Int32Array} functionOf
 * @param {FunctionInfo[]} functions
 */
function coloursOfNodes(functionOf, functions) {
  const colour = new Uint8Array(functionOf.length);
  for (let node = 0; node < colour.length; node += 1) {
    const at = functionOf[node];
    colour[node] = at >= 0 ? functions[at].colour : at === FUNCTION_ROOT ? COLOUR_ROOT : COLOUR_TRIMMED;
  }
  return colour;
}

/**
 * @param {Ancestor} ancestor
 * @param {number} at 0 is the root
 */
function colourOfAncestor({ name, binary, code }, at) {
  return at === 0 ? COLOUR_ROOT : colourIndex(name, binary, code ?? KIND_UNKNOWN);
}

/**
 * Parent of each node in preorder; -1 for the root.
 * @param {Int32Array} depth
 */
export function parentsFromDepths(depth) {
  const parent = new Int32Array(depth.length);
  /** @type {number[]} */
  const latest = [];
  for (let node = 0; node < depth.length; node += 1) {
    parent[node] = depth[node] > 0 ? latest[depth[node] - 1] : -1;
    latest[depth[node]] = node;
  }
  return parent;
}

/**
 * Counting sort by depth; it is stable, so each row stays in preorder, which is the order of start.
 * @param {Int32Array} depth
 */
function rowsFromDepths(depth) {
  let depthCount = 0;
  for (let node = 0; node < depth.length; node += 1) depthCount = Math.max(depthCount, depth[node] + 1);
  const rowOffsets = new Uint32Array(depthCount + 1);
  for (let node = 0; node < depth.length; node += 1) rowOffsets[depth[node] + 1] += 1;
  for (let row = 0; row < depthCount; row += 1) rowOffsets[row + 1] += rowOffsets[row];
  const next = rowOffsets.slice();
  const rowNodes = new Uint32Array(depth.length);
  for (let node = 0; node < depth.length; node += 1) {
    rowNodes[next[depth[node]]] = node;
    next[depth[node]] += 1;
  }
  return { depthCount, rowOffsets, rowNodes };
}

/**
 * The node with an id; -1 when the tree does not hold it.
 * @param {Tree} tree
 * @param {number} id
 */
export function nodeOfId(tree, id) {
  return tree.id.indexOf(id);
}

/**
 * The widest child; -1 for a leaf.
 * @param {Tree} tree
 * @param {number} node
 */
export function widestChild(tree, node) {
  let best = -1;
  for (let child = node + 1; child < tree.count && tree.depth[child] > tree.depth[node]; child += 1) {
    const isChild = tree.depth[child] === tree.depth[node] + 1;
    if (isChild && (best < 0 || tree.total[child] > tree.total[best])) best = child;
  }
  return best;
}

/**
 * The neighbour in the same row, wherever its parent is; -1 at the edge.
 * @param {Tree} tree
 * @param {number} node
 * @param {1 | -1} step
 */
export function rowNeighbour(tree, node, step) {
  const row = tree.depth[node];
  let low = tree.rowOffsets[row];
  let high = tree.rowOffsets[row + 1] - 1;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (tree.rowNodes[middle] < node) low = middle + 1;
    else high = middle;
  }
  const at = low + step;
  return at >= tree.rowOffsets[row] && at < tree.rowOffsets[row + 1] ? tree.rowNodes[at] : -1;
}

/**
 * The next node that matched the search, in preorder, going round at the end; -1 when none matched.
 * @param {Tree} tree
 * @param {number} node
 * @param {1 | -1} step
 */
export function nextMatch(tree, node, step) {
  if (!tree.matched) return -1;
  for (let turn = 1; turn <= tree.count; turn += 1) {
    const at = (node + step * turn + tree.count * 2) % tree.count;
    if (tree.matched[at]) return at;
  }
  return -1;
}

/**
 * What stands on a node, in words.
 * @param {Tree} tree
 * @param {number} node
 */
export function nodeName(tree, node) {
  const at = tree.functionOf[node];
  if (at >= 0) return tree.functions[at].name;
  if (at === FUNCTION_ROOT) return "all";
  const share = tree.selectionTotal > 0 ? (tree.total[node] / tree.selectionTotal) * 100 : 0;
  const frames = tree.trimmed[node];
  return `(trimmed: ${frames.toLocaleString("en-US")} ${frames === 1 ? "frame" : "frames"}, ${share < 0.05 ? "< 0.1" : share.toFixed(1)} %)`;
}
