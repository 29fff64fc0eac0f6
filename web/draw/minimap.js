// SPDX-License-Identifier: Apache-2.0
/** The whole tree in a strip, each row at most a few pixels high, with a frame around what the graph shows of it. */

import { layoutRows, makeBoxes } from "../core/layout.js";
import { fillLine } from "./scanline.js";
import { fitCanvas } from "./surface.js";

export const MINIMAP_PX = 36;
const FEWEST_ROWS = 9;
/** Rows that hold less than this share of the picture below them are left out: one deep recursion must not flatten the rest. */
const BELOW_SHARE = 0.02;

/**
 * @typedef {import("../core/tree.js").Tree} Tree
 * @typedef {{start: number, end: number, top: number, bottom: number}} Shown fractions of the whole, 0..1
 */

/**
 * Rows that the strip shows, from the root: as far down as the picture has weight.
 * @param {Tree} tree
 */
export function mapRows(tree) {
  const weight = new Float64Array(tree.depthCount);
  for (let node = 0; node < tree.count; node += 1) weight[tree.depth[node]] += tree.total[node];
  let below = weight.reduce((sum, each) => sum + each, 0) * BELOW_SHARE;
  let rows = tree.depthCount;
  while (rows > 1 && below >= weight[rows - 1]) {
    below -= weight[rows - 1];
    rows -= 1;
  }
  return Math.max(FEWEST_ROWS, rows);
}

/**
 * The strip as a picture, to be painted once per tree; the frame around the view is drawn over it each time.
 * A tree deeper than the strip has lines shows every n-th row.
 * @param {Tree} tree
 * @param {{width_px: number, colours: import("./flame-colours.js").FlameColours}} look
 * @returns {HTMLCanvasElement}
 */
export function paintMinimap(tree, { width_px, colours }) {
  const picture = document.createElement("canvas");
  const context = fitCanvas(picture, width_px, MINIMAP_PX);
  const { width, height } = picture;
  const image = context.createImageData(width, height);
  const pixels = new Uint32Array(image.data.buffer);
  const ratio = window.devicePixelRatio || 1;
  const rowHeight_px = MINIMAP_PX / mapRows(tree);
  const boxes = makeBoxes(tree.count);
  const packedOf = (/** @type {number} */ box) => colours.packed[tree.colour[boxes.node[box]]];
  const line = new Uint32Array(width);
  let shownRow = -1;
  pixels.fill(colours.packedSunken);
  for (let y = 0; y < height; y += 1) {
    const row = Math.floor(y / ratio / rowHeight_px);
    if (row >= tree.depthCount) break;
    if (row !== shownRow) {
      layoutRows(tree, { start: 0, end: tree.total[0] }, { firstRow: row, endRow: row + 1, width_px }, boxes);
      line.fill(colours.packedSunken);
      fillLine(line, boxes, { from: 0, until: boxes.count, packedOf, ratio });
      shownRow = row;
    }
    pixels.set(line, y * width);
  }
  context.putImageData(image, 0, 0);
  return picture;
}

/**
 * @param {HTMLCanvasElement} canvas
 * @param {HTMLCanvasElement} picture of paintMinimap
 * @param {Shown} shown
 * @param {{width_px: number, colours: import("./flame-colours.js").FlameColours}} look
 */
export function paintMinimapView(canvas, picture, shown, { width_px, colours }) {
  const context = fitCanvas(canvas, width_px, MINIMAP_PX);
  context.drawImage(picture, 0, 0, width_px, MINIMAP_PX);
  if (shown.end - shown.start > 0.999 && shown.bottom - shown.top > 0.999) return;
  const left = shown.start * width_px;
  const width = Math.max(3, (shown.end - shown.start) * width_px);
  const top = shown.top * MINIMAP_PX;
  const height = Math.max(4, (shown.bottom - shown.top) * MINIMAP_PX);
  context.globalAlpha = 0.62;
  context.fillStyle = colours.surface;
  context.fillRect(0, 0, left, MINIMAP_PX);
  context.fillRect(left + width, 0, width_px - left - width, MINIMAP_PX);
  context.fillRect(left, 0, width, top);
  context.fillRect(left, top + height, width, MINIMAP_PX - top - height);
  context.globalAlpha = 1;
  context.strokeStyle = colours.accent;
  context.lineWidth = 1.5;
  context.strokeRect(left + 0.75, top + 0.75, width - 1.5, height - 1.5);
}
