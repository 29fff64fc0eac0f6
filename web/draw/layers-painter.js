// SPDX-License-Identifier: Apache-2.0
/** Columns stacked over time, one bar a slot: where each second of the threads went. Slots without data are hatched. */

import { cssColour } from "../core/colour.js";
import { numberTicks, slotAt } from "../core/scale.js";
import { paintAxes, paintBrush, paintCursor, paintGaps, plotOf, xOfTime } from "./timeline-painter.js";
import { fitCanvas, tokenColours } from "./surface.js";

/**
 * @typedef {{key: string, label: string, values: ReadonlyArray<number | null>}} Layer `key` names its colour, --spent-KEY
 * @typedef {{from_s: number, until_s: number, step_s: number, times_s: number[], layers: Layer[], label?: (tick: number) => string,
 *   threshold?: number, base?: number}} Layers from the ground up; `label` writes a value on the axis, which is cut by powers of `base` (10
 *   if not said); a line marks the threshold
 */

/**
 * Sum of all layers in each slot; null where there is no data.
 * @param {Layers} shown
 * @returns {Array<number | null>}
 */
export function sumsOf({ times_s, layers }) {
  return times_s.map((_, at) => {
    const some = layers.flatMap(({ values }) => values[at] ?? []);
    return some.length > 0 ? some.reduce((sum, value) => sum + value, 0) : null;
  });
}

/**
 * How high the bars are drawn, and where.
 * @param {Layers} shown
 * @param {{width_px: number, height_px: number}} size
 */
function scaleOf(shown, { width_px, height_px }) {
  const sums = sumsOf(shown);
  const most = Math.max(0, (shown.threshold ?? 0) * 1.25, ...sums.map((sum) => sum ?? 0));
  const unit = shown.base && most > 1 ? shown.base ** Math.floor(Math.log(most) / Math.log(shown.base)) : 1;
  const ticks = numberTicks(most / unit, 3).map((tick) => tick * unit);
  return { sums, ticks, plot: plotOf(width_px, height_px, ticks[ticks.length - 1]) };
}

/**
 * Key of the layer that the pointer is on; empty when it is on none.
 * @param {Layers} shown
 * @param {import("../views/time-canvas.js").Scene} scene
 */
export function layerAt(shown, { width_px, height_px, cursor_s, y_px }) {
  const slot = cursor_s === null ? -1 : slotAt(shown.times_s, shown.step_s, cursor_s);
  if (slot < 0 || y_px === null) return "";
  const { plot } = scaleOf(shown, { width_px, height_px });
  let left = ((plot.top + plot.height - y_px) / plot.height) * plot.most;
  if (left < 0) return "";
  return shown.layers.find(({ values }) => (left -= values[slot] ?? 0) < 0)?.key ?? "";
}

/**
 * @param {HTMLCanvasElement} canvas
 * @param {Layers} shown
 * @param {import("../views/time-canvas.js").Scene} scene
 */
export function paintLayers(canvas, shown, { width_px, height_px, cursor_s, brush }) {
  const context = fitCanvas(canvas, width_px, height_px);
  const tokens = ["surface-card", "line", "text-secondary", "accent", "amber-text", ...shown.layers.map(({ key }) => `spent-${key}`)];
  const colours = Object.fromEntries(Object.entries(tokenColours(tokens)).map(([name, rgb]) => [name, cssColour(rgb)]));
  context.fillStyle = colours["surface-card"];
  context.fillRect(0, 0, width_px, height_px);
  const { sums, ticks, plot } = scaleOf(shown, { width_px, height_px });
  paintAxes(context, { timeline: shown, width_px }, plot, { ticks, colours, label: shown.label });
  context.save();
  context.beginPath();
  context.rect(plot.left, 0, plot.width, height_px);
  context.clip();
  paintGaps(context, { ...shown, cores: sums }, plot, colours);
  paintBars(context, shown, plot, { colours, hover: cursor_s === null ? -1 : slotAt(shown.times_s, shown.step_s, cursor_s) });
  if (shown.threshold !== undefined) paintThreshold(context, shown.threshold, plot, colours);
  context.restore();
  paintBrush(context, { timeline: shown, brush }, plot, colours);
  paintCursor(context, { timeline: shown, cursor_s, brush }, plot, colours);
}

/**
 * @param {CanvasRenderingContext2D} context
 * @param {number} threshold
 * @param {import("./timeline-painter.js").Plot} plot
 * @param {Record<string, string>} colours
 */
function paintThreshold(context, threshold, plot, colours) {
  const y = Math.round(plot.top + plot.height * (1 - threshold / plot.most)) + 0.5;
  context.strokeStyle = colours["amber-text"];
  context.lineWidth = 1;
  context.setLineDash([4, 3]);
  context.beginPath();
  context.moveTo(plot.left, y);
  context.lineTo(plot.left + plot.width, y);
  context.stroke();
  context.setLineDash([]);
}

/**
 * @param {CanvasRenderingContext2D} context
 * @param {Layers} shown
 * @param {import("./timeline-painter.js").Plot} plot
 * @param {{colours: Record<string, string>, hover: number}} look
 */
function paintBars(context, shown, plot, { colours, hover }) {
  const floor = plot.top + plot.height;
  const slot_px = (shown.step_s / (shown.until_s - shown.from_s)) * plot.width;
  const gap_px = slot_px >= 5 ? 1 : 0;
  shown.times_s.forEach((time_s, at) => {
    const left = Math.round(xOfTime(time_s, shown, plot) + gap_px / 2);
    const right = Math.round(xOfTime(Math.min(time_s + shown.step_s, shown.until_s), shown, plot) - gap_px / 2);
    let ground = 0;
    context.globalAlpha = hover < 0 || hover === at ? 1 : 0.72;
    for (const { key, values } of shown.layers) {
      const value = values[at] ?? 0;
      if (value <= 0) continue;
      const top = floor - ((ground + value) / plot.most) * plot.height;
      context.fillStyle = colours[`spent-${key}`];
      context.fillRect(left, top, Math.max(1, right - left), floor - (ground / plot.most) * plot.height - top);
      ground += value;
    }
  });
  context.globalAlpha = 1;
}
