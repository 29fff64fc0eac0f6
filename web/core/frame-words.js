// SPDX-License-Identifier: Apache-2.0
/** What is said of a frame: in the tooltip, in the details, and aloud. */

import { listOf } from "./quality.js";
import { nodeName } from "./tree.js";
import { formatDuration, formatShare } from "./units.js";

/**
 * @typedef {import("./tree.js").Tree} Tree
 * @typedef {{name: string, binary: string, file: string, line: number, code: number, builds?: readonly string[], lines: Array<[string, string]>}} FrameWords
 */

/** @type {[string, string]} */
export const INLINED_LINE = ["call", "inlined: its code is part of its caller's"];

/**
 * @param {Tree} tree
 * @param {number} node
 * @param {number} viewTotal total of the zoomed frame
 * @returns {FrameWords}
 */
export function frameWords(tree, node, viewTotal) {
  const at = tree.functionOf[node];
  const known = at >= 0 ? tree.functions[at] : { binary: "", file: "", line: 0, code: -1, builds: [] };
  const { binary, file, line, code, builds } = known;
  const lines = weightLines({ self: tree.self[node], total: tree.total[node], viewTotal, selectionTotal: tree.selectionTotal });
  if (tree.inlined[node]) lines.push(INLINED_LINE);
  return { name: nodeName(tree, node), binary, file, line, code, builds, lines };
}

/** Builds said in full; of more only how many there are. */
const BUILDS_SAID = 2;

/**
 * The builds of its binary that a function was met in, the latest first.
 * @param {readonly string[]} builds in hex, the latest last
 * @returns {Array<[string, string]>}
 */
export function buildLines(builds) {
  return builds.length > 0 ? [[builds.length > 1 ? "build ids" : "build id", listOf([...builds].reverse(), BUILDS_SAID)]] : [];
}

/**
 * Self and total with their shares; the share of all is said only where it differs from the share of the view.
 * @param {{self: number, total: number, viewTotal: number, selectionTotal: number}} weights in nanoseconds
 * @returns {Array<[string, string]>}
 */
export function weightLines({ self, total, viewTotal, selectionTotal }) {
  const isZoomed = viewTotal !== selectionTotal;
  const words = (/** @type {number} */ value) => {
    const ofAll = formatShare(selectionTotal > 0 ? value / selectionTotal : 0);
    if (!isZoomed) return `${formatDuration(value)} · ${ofAll}`;
    return `${formatDuration(value)} · ${formatShare(viewTotal > 0 ? value / viewTotal : 0)} of view · ${ofAll} of all`;
  };
  return [
    ["total", words(total)],
    ["self", words(self)],
  ];
}

/**
 * One sentence for a reader who hears the graph.
 * @param {Tree} tree
 * @param {number} node
 * @param {number} viewTotal
 */
export function spokenFrame(tree, node, viewTotal) {
  const words = frameWords(tree, node, viewTotal);
  const depth = tree.depth[node] + tree.ancestors.length;
  const weights = words.lines.map(([label, value]) => `${label} ${value.replaceAll(" · ", ", ")}`).join("; ");
  return `${words.name}${words.binary ? ` in ${words.binary}` : ""}; ${weights}; depth ${depth}`;
}
