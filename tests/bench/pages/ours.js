// SPDX-License-Identifier: Apache-2.0
/** Paints a whole answer of the API with the page's own modules, on one canvas that shows all rows. */

import { answerFromBytes } from "/web/core/columns.js";
import { ROW_PX, windowBetween } from "/web/core/layout.js";
import { treeFromAnswer } from "/web/core/tree.js";
import { flameColours } from "/web/draw/flame-colours.js";
import { makeFlamePainter } from "/web/draw/flame-painter.js";
import { tellPainted } from "/pages/painted.js";

const WIDTH_PX = 2000;
/** In the 120 ms that a zoom takes. */
const ZOOM_FRAMES = 8;
const canvas = /** @type {HTMLCanvasElement} */ (document.querySelector("canvas"));
const painter = makeFlamePainter();
const asked = fetch("/data/answer");
// As the page does while it waits: see FlameGraph.prepare.
const colours = flameColours("light");
painter.prepare();
const tree = treeFromAnswer(answerFromBytes(await (await asked).arrayBuffer()));
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
  colours,
  rootLabel: "all",
};
const { boxes } = painter.paint(canvas, scene);
tellPainted(boxes);

/**
 * Zoom in and out again, each time to another frame of the graph; the times between the animation frames meanwhile.
 * @param {number} times
 */
globalThis.zoom = async (times) => {
  const all = { start: 0, end: tree.total[0] };
  const frames = [];
  let latest = await new Promise(requestAnimationFrame);
  for (let turn = 0; turn < times * 2; turn += 1) {
    const node = Math.floor(((turn >> 1) / times) * tree.count);
    const one = { start: tree.start[node], end: tree.start[node] + tree.total[node] };
    const [from, to] = turn % 2 ? [one, all] : [all, one];
    for (let frame = 1; frame <= ZOOM_FRAMES; frame += 1) {
      painter.paint(canvas, { ...scene, window: windowBetween(from, to, frame / ZOOM_FRAMES) });
      const now = await new Promise(requestAnimationFrame);
      frames.push(now - latest);
      latest = now;
    }
  }
  return frames;
};

/** Paint again, zoomed by a little so that nothing can be kept; the time until the pixels are there. */
globalThis.redraw = (/** @type {number} */ turn) => {
  const began = performance.now();
  const end = tree.total[0] * (1 - (turn % 7) / 1000);
  painter.paint(canvas, { ...scene, window: { start: 0, end }, hover: turn });
  canvas.getContext("2d")?.getImageData(WIDTH_PX - 2, 20, 1, 1);
  return performance.now() - began;
};
