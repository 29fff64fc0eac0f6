// SPDX-License-Identifier: Apache-2.0
/** Paints a whole answer of the API with the page's own modules, on one canvas that shows all rows. */

import { ROW_PX } from "/web/core/layout.js";
import { treeFromAnswer } from "/web/core/tree.js";
import { flameColours } from "/web/draw/flame-colours.js";
import { makeFlamePainter } from "/web/draw/flame-painter.js";
import { tellPainted } from "/pages/painted.js";

const WIDTH_PX = 2000;
const canvas = /** @type {HTMLCanvasElement} */ (document.querySelector("canvas"));
const painter = makeFlamePainter();
const answer = await (await fetch("/data/answer.json")).json();
const tree = treeFromAnswer(answer);
const scene = {
  tree,
  window: { start: 0, end: tree.total[0] },
  focus: 0,
  hover: -1,
  selected: -1,
  marked: -1,
  scroll_px: 0,
  width_px: WIDTH_PX,
  height_px: tree.depthCount * ROW_PX,
  colours: flameColours("light"),
  rootLabel: "all",
};
const { boxes } = painter.paint(canvas, scene);
tellPainted(boxes);

/** Paint again, zoomed by a little so that nothing can be kept; the time until the pixels are there. */
globalThis.redraw = (/** @type {number} */ turn) => {
  const began = performance.now();
  const end = tree.total[0] * (1 - (turn % 7) / 1000);
  painter.paint(canvas, { ...scene, window: { start: 0, end }, hover: turn });
  canvas.getContext("2d")?.getImageData(WIDTH_PX - 2, 20, 1, 1);
  return performance.now() - began;
};
