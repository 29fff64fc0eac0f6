// SPDX-License-Identifier: Apache-2.0
/** A heat map of hosts by time: a row a host, names on the left, times below, the selection in the colours of the two sides. */

import { cssColour } from "../core/colour.js";
import { SHADES, cellsOfBox, shadeOf } from "../core/heat.js";
import { rampColour } from "../core/latency.js";
import { timeTicks } from "../core/scale.js";
import { cutName, visibleText } from "../core/text.js";
import { fitCanvas, tokenColours } from "./surface.js";

/**
 * @typedef {import("../core/heat.js").Grid} Grid
 * @typedef {import("../core/heat.js").Cell} Cell
 * @typedef {import("../core/heat.js").HeatBox} HeatBox
 * @typedef {{grid: Grid, values: ReadonlyArray<ReadonlyArray<number | null>>, most: number, boxes: readonly HeatBox[], cursor: Cell | null, width_px: number}} HeatScene
 * @typedef {{left: number, top: number, width: number, row_px: number, slot_px: number, height: number}} HeatPlot
 */

const RAMP = /** @type {const} */ (["heat-0", "heat-1", "heat-2", "heat-3", "heat-4"]);
const NAME_FONT = '11px ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace';
const AXIS_FONT = "11px system-ui, sans-serif";
const AXIS_PX = 22;
const [ROW_MOST_PX, ROW_LEAST_PX, HEIGHT_PX] = [22, 4, 560];

/**
 * @param {Grid} grid
 * @param {number} width_px
 * @returns {HeatPlot}
 */
export function heatPlotOf({ slots, hosts }, width_px) {
  const left = width_px < 600 ? 76 : 148;
  const row_px = Math.max(ROW_LEAST_PX, Math.min(ROW_MOST_PX, Math.floor(HEIGHT_PX / Math.max(1, hosts.length))));
  const width = Math.max(10, width_px - left - 12);
  return { left, top: 4, width, row_px, slot_px: width / Math.max(1, slots), height: 4 + row_px * hosts.length + AXIS_PX };
}

/**
 * The cell under a point; the nearest when it is outside.
 * @param {Grid} grid
 * @param {HeatPlot} plot
 * @param {number} x_px
 * @param {number} y_px
 * @returns {Cell}
 */
export function cellAt({ slots, hosts }, plot, x_px, y_px) {
  const within = (/** @type {number} */ at, /** @type {number} */ count) => Math.max(0, Math.min(count - 1, Math.floor(at)));
  return { slot: within((x_px - plot.left) / plot.slot_px, slots), row: within((y_px - plot.top) / plot.row_px, hosts.length) };
}

/**
 * @param {HTMLCanvasElement} canvas
 * @param {HeatScene} scene
 */
export function paintHosts(canvas, scene) {
  const { grid, values, most, width_px } = scene;
  const plot = heatPlotOf(grid, width_px);
  const context = fitCanvas(canvas, width_px, plot.height);
  const token = tokenColours(["surface-card", "surface-sunken", "line", "text", "text-secondary", "accent", "side-a", ...RAMP]);
  const colours = Object.fromEntries(Object.entries(token).map(([name, rgb]) => [name, cssColour(rgb)]));
  const ramp = Array.from({ length: SHADES }, (_, at) => cssColour(rampColour(RAMP.map((name) => token[name]), at / (SHADES - 1))));
  context.fillStyle = colours["surface-card"];
  context.fillRect(0, 0, width_px, plot.height);
  const gap = plot.row_px >= 8 ? 1 : 0;
  values.forEach((row, at) => {
    const top = plot.top + at * plot.row_px;
    row.forEach((value, slot) => {
      const shade = shadeOf(value, most);
      if (shade < 0) return;
      const left = Math.round(plot.left + slot * plot.slot_px);
      const right = Math.round(plot.left + (slot + 1) * plot.slot_px);
      context.fillStyle = shade === 0 ? colours["surface-sunken"] : ramp[shade - 1];
      context.fillRect(left, top, Math.max(1, right - left - (plot.slot_px >= 6 ? 1 : 0)), plot.row_px - gap);
    });
  });
  paintNames(context, scene, plot, colours);
  paintTimes(context, scene, plot, colours);
  const isPair = scene.boxes.length > 1;
  scene.boxes.forEach((box, at) => {
    const chip = at === 0 ? colours["side-a"] : colours.accent;
    paintBox(context, scene, plot, { box, colour: isPair ? chip : colours.text, paper: colours["surface-card"], letter: isPair ? "AB"[at] : "" });
  });
  paintCell(context, scene, plot, colours.text);
}

/**
 * @param {CanvasRenderingContext2D} context
 * @param {HeatScene} scene
 * @param {HeatPlot} plot
 * @param {Record<string, string>} colours
 */
function paintNames(context, { grid, cursor }, plot, colours) {
  const every = Math.max(1, Math.ceil(13 / plot.row_px));
  const characters = Math.floor((plot.left - 14) / 6.7);
  context.font = NAME_FONT;
  context.textAlign = "right";
  context.textBaseline = "middle";
  grid.hosts.forEach((host, row) => {
    if (row % every !== 0) return;
    context.fillStyle = cursor?.row === row ? colours.text : colours["text-secondary"];
    context.fillText(cutName(visibleText(host), characters), plot.left - 8, plot.top + (row + 0.5) * plot.row_px);
  });
}

/**
 * @param {CanvasRenderingContext2D} context
 * @param {HeatScene} scene
 * @param {HeatPlot} plot
 * @param {Record<string, string>} colours
 */
function paintTimes(context, { grid }, plot, colours) {
  const bottom = plot.height - AXIS_PX;
  const until_s = grid.from_s + grid.step_s * grid.slots;
  context.font = AXIS_FONT;
  context.textAlign = "center";
  context.textBaseline = "alphabetic";
  for (const { time_s, label } of timeTicks(grid.from_s, until_s, Math.max(2, Math.floor(plot.width / 90)))) {
    const x = plot.left + ((time_s - grid.from_s) / grid.step_s) * plot.slot_px;
    context.fillStyle = colours.line;
    context.fillRect(Math.round(x), bottom, 1, 5);
    context.fillStyle = colours["text-secondary"];
    context.fillText(label, x, bottom + 16);
  }
}

/**
 * @param {CanvasRenderingContext2D} context
 * @param {HeatScene} scene
 * @param {HeatPlot} plot
 * @param {{box: HeatBox, colour: string, paper: string, letter: string}} look
 */
function paintBox(context, { grid }, plot, { box, colour, paper, letter }) {
  const cells = cellsOfBox(grid, box);
  if (!cells) return;
  const x = plot.left + cells.left * plot.slot_px;
  const y = plot.top + cells.top * plot.row_px;
  const [width, height] = [(cells.right - cells.left) * plot.slot_px, (cells.bottom - cells.top) * plot.row_px];
  context.strokeStyle = paper;
  context.lineWidth = 5;
  context.strokeRect(x, y, width, height);
  context.strokeStyle = colour;
  context.lineWidth = 2.5;
  context.strokeRect(x, y, width, height);
  if (!letter) return;
  context.fillStyle = colour;
  context.fillRect(x - 1, y - 1, 16, 16);
  context.font = "600 11px system-ui, sans-serif";
  context.textAlign = "center";
  context.textBaseline = "middle";
  context.fillStyle = paper;
  context.fillText(letter, x + 7, y + 8);
}

/**
 * @param {CanvasRenderingContext2D} context
 * @param {HeatScene} scene
 * @param {HeatPlot} plot
 * @param {string} colour
 */
function paintCell(context, { cursor }, plot, colour) {
  if (!cursor) return;
  context.strokeStyle = colour;
  context.lineWidth = 1.5;
  context.strokeRect(plot.left + cursor.slot * plot.slot_px, plot.top + cursor.row * plot.row_px, plot.slot_px, plot.row_px);
}
