// SPDX-License-Identifier: Apache-2.0
/**
 * Paints the rows of a flame graph that are on screen. Boxes are written as pixels, row by row; names only where there is room.
 *
 * Cost follows what is seen: the rows inside the box, and of those what is half a pixel and wider.
 */

import { COLOUR_COUNT, COLOUR_ROOT, COLOUR_TRIMMED, STEPS } from "../core/colour.js";
import { GAPLESS_PX, ROW_PX, layoutRows, makeBoxes } from "../core/layout.js";
import { cutName, visibleText } from "../core/text.js";
import { FUNCTION_TRIMMED, nodeName } from "../core/tree.js";
import { STRENGTH_ABOVE, STRENGTH_DIMMED, STRENGTH_INLINED, STRENGTH_PLAIN } from "./flame-colours.js";
import { fillLine, makeRowPicture } from "./scanline.js";
import { fitCanvas } from "./surface.js";

/**
 * @typedef {import("../core/tree.js").Tree} Tree
 * @typedef {import("../core/layout.js").Boxes} Boxes
 * @typedef {import("../core/layout.js").Span} Span
 * @typedef {{
 *   tree: Tree, window: Span, focus: number, hover: number, selected: number, marked: number,
 *   scroll_px: number, width_px: number, height_px: number, colours: import("./flame-colours.js").FlameColours, rootLabel: string,
 *   markOf: ((tree: Tree, node: number) => {short: string, long: string}) | null,
 * }} Scene `marked` is a function whose frames are all outlined; -1 none; `markOf` gives what is written before a name
 * @typedef {{kinds: Set<number>, boxes: number}} Painted
 */

export const FRAME_FONT = "12px ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace";
const TEXT_PAD_PX = 4;
const NARROWEST_TEXT_PX = 24;
/** Characters that a name needs beside a number. */
const LEAST_NAME = 9;

/** @returns {{prepare: () => void, paint: (canvas: HTMLCanvasElement, scene: Scene) => Painted}} */
export function makeFlamePainter() {
  let boxes = makeBoxes(0);
  let bucketOf = new Uint16Array(0);
  const picture = makeRowPicture();
  return {
    /** What needs no tree and takes a while the first time: the font. */
    prepare: () => void characterWidth(picture.context),
    paint(canvas, scene) {
      const { tree } = scene;
      if (boxes.node.length < tree.count) {
        boxes = makeBoxes(tree.count);
        bucketOf = new Uint16Array(tree.count);
      }
      const context = fitCanvas(canvas, scene.width_px, scene.height_px);
      const area = rowsOnScreen(scene);
      layoutRows(tree, scene.window, area, boxes);
      const kinds = chooseBuckets(scene, boxes, bucketOf);
      fillBoxes(context, scene, boxes, { bucketOf, area, picture });
      paintAncestors(context, scene);
      writeNames(context, scene, boxes, bucketOf);
      outlineBoxes(context, scene, boxes);
      return { kinds, boxes: boxes.count };
    },
  };
}

/** @param {Scene} scene */
function rowsOnScreen({ tree, scroll_px, height_px, width_px }) {
  const above = tree.ancestors.length;
  const firstRow = Math.floor(scroll_px / ROW_PX) - above;
  return { firstRow: Math.max(0, firstRow), endRow: Math.ceil((scroll_px + height_px) / ROW_PX) - above, width_px };
}

/**
 * @param {Scene} scene
 * @param {number} row in the tree
 */
function topOf({ tree, scroll_px }, row) {
  return (row + tree.ancestors.length) * ROW_PX - scroll_px;
}

/**
 * Strength and colour of each box, as one number.
 * @param {Scene} scene
 * @param {Boxes} boxes
 * @param {Uint16Array} bucketOf is filled
 * @returns {Set<number>} kinds of code that are seen
 */
function chooseBuckets({ tree, focus }, boxes, bucketOf) {
  const focusRow = tree.depth[focus];
  const isSeen = new Uint8Array(COLOUR_COUNT);
  for (let box = 0; box < boxes.count; box += 1) {
    const node = boxes.node[box];
    const isDimmed = tree.matched !== null && tree.matched[node] === 0;
    const plain = tree.inlined[node] ? STRENGTH_INLINED : STRENGTH_PLAIN;
    const strength = isDimmed ? STRENGTH_DIMMED : boxes.row[box] < focusRow ? STRENGTH_ABOVE : plain;
    bucketOf[box] = strength * COLOUR_COUNT + tree.colour[node];
    isSeen[tree.colour[node]] = 1;
  }
  const kinds = new Set();
  isSeen.forEach((seen, colour) => seen && colour < COLOUR_ROOT && kinds.add(Math.floor(colour / STEPS)));
  return kinds;
}

/**
 * Every row is coloured as one line of pixels and stretched over its height; what is hatched is drawn over that.
 * @param {CanvasRenderingContext2D} context
 * @param {Scene} scene
 * @param {Boxes} boxes
 * @param {{bucketOf: Uint16Array, area: ReturnType<typeof rowsOnScreen>, picture: ReturnType<typeof makeRowPicture>}} more
 */
function fillBoxes(context, scene, boxes, { bucketOf, area, picture }) {
  const { colours } = scene;
  const { width } = context.canvas;
  const ratio = window.devicePixelRatio || 1;
  const firstRow = area.firstRow;
  const rows = Math.max(1, Math.min(area.endRow, scene.tree.depthCount) - firstRow);
  const lines = picture.lines(width, rows).fill(colours.packedSurface);
  const packedOf = (/** @type {number} */ box) => colours.packed[bucketOf[box]];
  for (let from = 0; from < boxes.count; ) {
    const row = boxes.row[from];
    let until = from + 1;
    while (until < boxes.count && boxes.row[until] === row) until += 1;
    const line = lines.subarray((row - firstRow) * width, (row - firstRow + 1) * width);
    fillLine(line, boxes, { from, until, packedOf, ratio });
    from = until;
  }
  context.fillStyle = colours.surface;
  context.fillRect(0, 0, scene.width_px, scene.height_px);
  picture.draw(context, (row) => {
    const top = topOf(scene, firstRow + row);
    return { top: Math.round(top * ratio), bottom: Math.round((top + ROW_PX - 1) * ratio) };
  });
  for (let box = 0; box < boxes.count; box += 1) {
    if (!colours.isHatched[bucketOf[box]]) continue;
    context.fillStyle = colours.fillOf(bucketOf[box]);
    const gap = boxes.width_px[box] >= GAPLESS_PX ? 1 : 0;
    context.fillRect(boxes.x_px[box], topOf(scene, boxes.row[box]), Math.max(1, boxes.width_px[box] - gap), ROW_PX - 1);
  }
}

/**
 * Frames above the view's root: each as wide as the view.
 * @param {CanvasRenderingContext2D} context
 * @param {Scene} scene
 */
function paintAncestors(context, scene) {
  const { tree, colours, width_px } = scene;
  const character_px = characterWidth(context);
  context.textBaseline = "middle";
  tree.ancestors.forEach((ancestor, at) => {
    const top = at * ROW_PX - scene.scroll_px;
    if (top < -ROW_PX || top > scene.height_px) return;
    context.fillStyle = colours.fillOf(STRENGTH_ABOVE * COLOUR_COUNT + tree.ancestorColour[at]);
    context.fillRect(0, top, width_px - 1, ROW_PX - 1);
    const name = at === 0 ? scene.rootLabel : visibleText(ancestor.name);
    writeName(context, name, { left: 0, top, width: width_px, ink: colours.ink[STRENGTH_ABOVE], character_px });
  });
}

/**
 * @param {CanvasRenderingContext2D} context
 * @param {Scene} scene
 * @param {Boxes} boxes
 * @param {Uint16Array} bucketOf
 */
function writeNames(context, scene, boxes, bucketOf) {
  const { tree, colours } = scene;
  const character_px = characterWidth(context);
  context.textBaseline = "middle";
  for (let box = 0; box < boxes.count; box += 1) {
    if (boxes.width_px[box] < NARROWEST_TEXT_PX) continue;
    const node = boxes.node[box];
    const full = node === 0 && tree.ancestors.length === 0 ? scene.rootLabel : nodeName(tree, node);
    const isShort = tree.functionOf[node] === FUNCTION_TRIMMED && full.length * character_px > boxes.width_px[box] - 2 * TEXT_PAD_PX;
    const name = isShort ? "…" : full;
    const mark = scene.markOf ? markedName(name, scene.markOf(tree, node), Math.floor((boxes.width_px[box] - 2 * TEXT_PAD_PX) / character_px)) : name;
    const isOwnInk = tree.colour[node] === COLOUR_ROOT || tree.colour[node] === COLOUR_TRIMMED;
    const strength = Math.floor(bucketOf[box] / COLOUR_COUNT);
    const ink = colours.ink[isOwnInk && strength === STRENGTH_PLAIN ? STRENGTH_ABOVE : strength];
    const top = topOf(scene, boxes.row[box]);
    writeName(context, mark, { left: boxes.x_px[box], top, width: boxes.width_px[box], ink, character_px });
  }
}

/**
 * A name with its mark before it: the long one when the name has room beside it, else the short one.
 * @param {string} name
 * @param {{short: string, long: string}} mark
 * @param {number} room in characters
 */
function markedName(name, { short, long }, room) {
  if (short === "" || room < 1) return name;
  if (room >= long.length + LEAST_NAME) return `${long} ${cutName(name, room - long.length - 1)}`;
  return room > 3 ? `${short} ${cutName(name, room - 2)}` : short;
}

/**
 * Width of one character of the frames' font. Measuring 64 at once costs 2 us; once a paint is nothing.
 * @param {CanvasRenderingContext2D} context
 */
function characterWidth(context) {
  context.font = FRAME_FONT;
  return context.measureText("0".repeat(64)).width / 64;
}

/**
 * @param {CanvasRenderingContext2D} context
 * @param {string} name
 * @param {{left: number, top: number, width: number, ink: string, character_px: number}} place
 */
function writeName(context, name, { left, top, width, ink, character_px }) {
  const room_px = width - 2 * TEXT_PAD_PX;
  const cut = cutName(name, Math.floor(room_px / character_px));
  if (cut === "") return;
  context.fillStyle = ink;
  // Letters outside the font may be wider than its own: the last argument squeezes those into the frame.
  context.fillText(cut, left + TEXT_PAD_PX, top + ROW_PX / 2, room_px);
}

/**
 * @param {CanvasRenderingContext2D} context
 * @param {Scene} scene
 * @param {Boxes} boxes
 */
function outlineBoxes(context, scene, boxes) {
  const { tree, colours, hover, selected, marked } = scene;
  if (hover < 0 && selected < 0 && marked < 0) return;
  for (let box = 0; box < boxes.count; box += 1) {
    const node = boxes.node[box];
    const isMarked = marked >= 0 && tree.functionOf[node] === marked;
    if (node !== hover && node !== selected && !isMarked) continue;
    const isStrong = node === selected;
    const thick_px = isStrong ? 2 : 1.5;
    context.lineWidth = thick_px;
    context.strokeStyle = isStrong ? colours.accent : colours.outline;
    const width = Math.max(1, boxes.width_px[box] - 1 - thick_px);
    context.strokeRect(boxes.x_px[box] + thick_px / 2, topOf(scene, boxes.row[box]) + thick_px / 2, width, ROW_PX - 1 - thick_px);
  }
}
