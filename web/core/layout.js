// SPDX-License-Identifier: Apache-2.0
/**
 * Which nodes are seen in a window of the tree, and where. Binary search per row, then a walk over what is seen only.
 *
 * A window is a span in the tree's own units: [start, end) of the root's total. Rows above the tree are its ancestors.
 */

/** @typedef {import("./tree.js").Tree} Tree */
/** @typedef {{start: number, end: number}} Span */
/**
 * Boxes of some rows, `count` of each column in use. Neighbours of one colour too narrow for a gap are one box; `node` is then the first.
 * @typedef {{count: number, x_px: Float32Array, width_px: Float32Array, row: Uint32Array, node: Uint32Array}} Boxes
 */

export const ROW_PX = 18;
/** Nothing narrower is drawn. */
export const NARROWEST_PX = 0.5;
/** Boxes narrower than this have no gap, so neighbours of one colour can be drawn as one. */
export const GAPLESS_PX = 2.5;

/**
 * First place in the row whose node ends after `value`.
 * @param {Tree} tree
 * @param {number} row depth in the tree
 * @param {number} value
 */
function firstEndingAfter(tree, row, value) {
  let low = tree.rowOffsets[row];
  let high = tree.rowOffsets[row + 1];
  while (low < high) {
    const middle = (low + high) >> 1;
    const node = tree.rowNodes[middle];
    if (tree.start[node] + tree.total[node] <= value) low = middle + 1;
    else high = middle;
  }
  return low;
}

/**
 * The node of a row at a value; -1 where there is none.
 * @param {Tree} tree
 * @param {number} row
 * @param {number} value in the tree's units
 */
export function nodeAt(tree, row, value) {
  if (row < 0 || row >= tree.depthCount) return -1;
  const at = firstEndingAfter(tree, row, value);
  if (at >= tree.rowOffsets[row + 1]) return -1;
  const node = tree.rowNodes[at];
  return tree.start[node] <= value ? node : -1;
}

/**
 * Room for the boxes of a tree; reuse it between frames.
 * @param {number} capacity
 * @returns {Boxes}
 */
export function makeBoxes(capacity) {
  return {
    count: 0,
    x_px: new Float32Array(capacity),
    width_px: new Float32Array(capacity),
    row: new Uint32Array(capacity),
    node: new Uint32Array(capacity),
  };
}

/**
 * Lay out the rows [firstRow, endRow) of a tree in a window of `width_px`; fills and returns `boxes`.
 * @param {Tree} tree
 * @param {Span} window
 * @param {{firstRow: number, endRow: number, width_px: number}} area
 * @param {Boxes} boxes with room for every node of the tree
 */
export function layoutRows(tree, window, { firstRow, endRow, width_px }, boxes) {
  const scale = width_px / (window.end - window.start);
  let count = 0;
  for (let row = Math.max(0, firstRow); row < Math.min(endRow, tree.depthCount); row += 1) {
    count = layoutRow(tree, row, { window, scale, width_px }, boxes, count);
  }
  boxes.count = count;
  return boxes;
}

/**
 * @param {Tree} tree
 * @param {number} row
 * @param {{window: Span, scale: number, width_px: number}} view
 * @param {Boxes} boxes
 * @param {number} count boxes so far
 * @returns {number} boxes with this row
 */
function layoutRow(tree, row, { window, scale, width_px }, boxes, count) {
  const { start, total, colour, matched, rowNodes } = tree;
  const rowEnd = tree.rowOffsets[row + 1];
  const rowBegin = count;
  for (let at = firstEndingAfter(tree, row, window.start); at < rowEnd; at += 1) {
    const node = rowNodes[at];
    if (start[node] >= window.end) break;
    const left = Math.max(0, (start[node] - window.start) * scale);
    const right = Math.min(width_px, (start[node] + total[node] - window.start) * scale);
    const width = right - left;
    if (width < NARROWEST_PX) continue;
    const before = count - 1;
    if (width < GAPLESS_PX && before >= rowBegin && boxes.width_px[before] < GAPLESS_PX * 4) {
      const other = boxes.node[before];
      const touches = left - (boxes.x_px[before] + boxes.width_px[before]) < 0.01;
      const isAlike = colour[other] === colour[node] && (matched === null || matched[other] === matched[node]);
      if (touches && isAlike && total[other] * scale < GAPLESS_PX) {
        boxes.width_px[before] = right - boxes.x_px[before];
        continue;
      }
    }
    boxes.x_px[count] = left;
    boxes.width_px[count] = width;
    boxes.row[count] = row;
    boxes.node[count] = node;
    count += 1;
  }
  return count;
}

/**
 * A window between two others, eased; `progress` 0 is `from`, 1 is `to`.
 * @param {Span} from
 * @param {Span} to
 * @param {number} progress
 * @returns {Span}
 */
export function windowBetween(from, to, progress) {
  const eased = 1 - (1 - Math.min(1, Math.max(0, progress))) ** 3;
  return { start: from.start + (to.start - from.start) * eased, end: from.end + (to.end - from.end) * eased };
}

/**
 * The window moved and scaled about a point, kept inside the root.
 * @param {Span} window
 * @param {{factor: number, about: number, shift: number, whole: number}} change factor < 1 comes nearer; about and shift in the
 *   tree's units; whole is the root's total
 * @returns {Span}
 */
export function windowScaled(window, { factor, about, shift, whole }) {
  const size = Math.min(whole, Math.max(whole / 1e6, (window.end - window.start) * factor));
  const share = (about - window.start) / (window.end - window.start);
  const start = Math.min(Math.max(0, about - size * share + shift), whole - size);
  return { start, end: start + size };
}
