// SPDX-License-Identifier: Apache-2.0
/** The whole tree in a strip, each row one or two pixels high, with a frame around what the graph shows of it. */

import { COLOUR_COUNT } from "../core/colour.js";
import { layoutRows, makeBoxes } from "../core/layout.js";
import { fitCanvas } from "./surface.js";

export const MINIMAP_PX = 36;

/**
 * @typedef {import("../core/tree.js").Tree} Tree
 * @typedef {{start: number, end: number, top: number, bottom: number}} Shown fractions of the whole, 0..1
 */

/**
 * The strip as a picture, to be painted once per tree; the frame around the view is drawn over it each time.
 * @param {Tree} tree
 * @param {{width_px: number, colours: import("./flame-colours.js").FlameColours}} look
 * @returns {HTMLCanvasElement}
 */
export function paintMinimap(tree, { width_px, colours }) {
  const picture = document.createElement("canvas");
  const context = fitCanvas(picture, width_px, MINIMAP_PX);
  context.fillStyle = colours.sunken;
  context.fillRect(0, 0, width_px, MINIMAP_PX);
  const rowHeight_px = Math.min(4, MINIMAP_PX / tree.depthCount);
  // Deeper than it has pixels: every n-th row stands for its neighbours.
  const stride = Math.max(1, Math.floor(tree.depthCount / (MINIMAP_PX * 2)));
  const boxes = makeBoxes(tree.count);
  for (let row = 0; row < tree.depthCount; row += stride) {
    layoutRows(tree, { start: 0, end: tree.total[0] }, { firstRow: row, endRow: row + 1, width_px }, boxes);
    for (let box = 0; box < boxes.count; box += 1) {
      context.fillStyle = colours.fills[tree.colour[boxes.node[box]] % COLOUR_COUNT];
      context.fillRect(boxes.x_px[box], row * rowHeight_px, boxes.width_px[box], Math.max(rowHeight_px * stride, 0.5));
    }
  }
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
