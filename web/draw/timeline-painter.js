// SPDX-License-Identifier: Apache-2.0
/** A timeline: cores over time as an area with axes, amber under slots that lost samples, hatched where there is no data. */

import { isLossGrave } from "../core/quality.js";
import { numberTicks, timeTicks } from "../core/scale.js";
import { NS_PER_S, formatTick } from "../core/units.js";
import { cssColour } from "../core/colour.js";
import { fitCanvas, tokenColours } from "./surface.js";

/**
 * @typedef {{from_s: number, until_s: number, step_s: number, times_s: number[], cores: Array<number | null>, loss: Array<number | null>}} Timeline
 * @typedef {{timeline: Timeline, width_px: number, height_px: number, cursor_s: number | null, brush: [number, number] | null}} TimelineScene
 * @typedef {{left: number, top: number, width: number, height: number, most: number}} Plot
 */

export const PLOT_LEFT_PX = 52;
const PLOT_RIGHT_PX = 12;
const PLOT_TOP_PX = 10;
const PLOT_BOTTOM_PX = 22;
const FONT = "11px system-ui, sans-serif";

/**
 * Cores of each slot from its nanoseconds; the last slot may be cut by the end of the range.
 * @param {import("../net/api.js").SeriesAnswer} answer
 * @returns {Timeline}
 */
export function timelineFromSeries({ from_s, until_s, step_s, times_s, values, loss }) {
  const cores = values.map((value, at) => {
    const length_s = Math.min(step_s, until_s - times_s[at]);
    return value === null || length_s <= 0 ? null : value / NS_PER_S / length_s;
  });
  return { from_s, until_s, step_s, times_s, cores, loss };
}

/**
 * @param {number} x_px
 * @param {{from_s: number, until_s: number}} timeline
 * @param {number} width_px
 */
export function timeOfX(x_px, { from_s, until_s }, width_px) {
  const share = (x_px - PLOT_LEFT_PX) / (width_px - PLOT_LEFT_PX - PLOT_RIGHT_PX);
  return from_s + Math.min(1, Math.max(0, share)) * (until_s - from_s);
}

/**
 * Where the plot stands in a canvas.
 * @param {number} width_px
 * @param {number} height_px
 * @param {number} most value at its upper edge
 * @returns {Plot}
 */
export function plotOf(width_px, height_px, most) {
  return {
    left: PLOT_LEFT_PX,
    top: PLOT_TOP_PX,
    width: Math.max(10, width_px - PLOT_LEFT_PX - PLOT_RIGHT_PX),
    height: height_px - PLOT_TOP_PX - PLOT_BOTTOM_PX,
    most,
  };
}

/**
 * @param {number} time_s
 * @param {{from_s: number, until_s: number}} timeline
 * @param {Plot} plot
 */
export function xOfTime(time_s, { from_s, until_s }, plot) {
  return plot.left + ((time_s - from_s) / (until_s - from_s)) * plot.width;
}

/**
 * @param {HTMLCanvasElement} canvas
 * @param {TimelineScene} scene
 */
export function paintTimeline(canvas, scene) {
  const { timeline, width_px, height_px } = scene;
  const context = fitCanvas(canvas, width_px, height_px);
  const token = tokenColours(["surface-card", "line", "text-secondary", "text", "accent", "accent-soft", "amber"]);
  const colours = Object.fromEntries(Object.entries(token).map(([name, rgb]) => [name, cssColour(rgb)]));
  context.fillStyle = colours["surface-card"];
  context.fillRect(0, 0, width_px, height_px);
  const most = Math.max(0, ...timeline.cores.map((value) => value ?? 0));
  const ticks = numberTicks(most, 3);
  const plot = plotOf(width_px, height_px, ticks[ticks.length - 1]);
  paintAxes(context, scene, plot, { ticks, colours });
  context.save();
  context.beginPath();
  context.rect(plot.left, 0, plot.width, height_px);
  context.clip();
  paintGaps(context, timeline, plot, colours);
  paintArea(context, timeline, plot, colours);
  paintLoss(context, timeline, plot, colours);
  context.restore();
  paintBrush(context, scene, plot, colours);
  paintCursor(context, scene, plot, colours);
}

/**
 * @param {CanvasRenderingContext2D} context
 * @param {{timeline: {from_s: number, until_s: number}, width_px: number}} scene
 * @param {Plot} plot
 * @param {{ticks: number[], colours: Record<string, string>, label?: (tick: number) => string}} look
 */
export function paintAxes(context, { timeline, width_px }, plot, { ticks, colours, label = formatTick }) {
  context.font = FONT;
  context.textBaseline = "middle";
  context.textAlign = "right";
  context.lineWidth = 1;
  context.strokeStyle = colours.line;
  context.fillStyle = colours["text-secondary"];
  for (const tick of ticks) {
    const y = Math.round(plot.top + plot.height * (1 - tick / plot.most)) + 0.5;
    context.beginPath();
    context.moveTo(plot.left, y);
    context.lineTo(plot.left + plot.width, y);
    context.stroke();
    context.fillText(label(tick), plot.left - 8, y);
  }
  context.textAlign = "center";
  for (const { time_s, label: words } of timeTicks(timeline.from_s, timeline.until_s, Math.max(2, Math.floor(width_px / 96)))) {
    const x = Math.round(xOfTime(time_s, timeline, plot)) + 0.5;
    const half = context.measureText(words).width / 2;
    context.fillText(words, Math.min(x, width_px - half - 2), plot.top + plot.height + 13);
    context.beginPath();
    context.moveTo(x, plot.top + plot.height);
    context.lineTo(x, plot.top + plot.height + 4);
    context.stroke();
  }
  context.textAlign = "left";
}

/**
 * Slots without data, hatched: nothing is known there, which is not the same as nothing was used.
 * @param {CanvasRenderingContext2D} context
 * @param {{from_s: number, until_s: number, step_s: number, times_s: number[], cores: ReadonlyArray<unknown>}} timeline gaps are null
 * @param {Plot} plot
 * @param {Record<string, string>} colours
 */
export function paintGaps(context, timeline, plot, colours) {
  const gaps = new Path2D();
  timeline.times_s.forEach((time_s, at) => {
    if (timeline.cores[at] !== null) return;
    const left = xOfTime(time_s, timeline, plot);
    gaps.rect(left, plot.top, xOfTime(time_s + timeline.step_s, timeline, plot) - left, plot.height);
  });
  context.save();
  context.clip(gaps);
  context.strokeStyle = colours.line;
  context.lineWidth = 1;
  context.beginPath();
  for (let x = plot.left - plot.height; x < plot.left + plot.width; x += 7) {
    context.moveTo(x, plot.top + plot.height);
    context.lineTo(x + plot.height, plot.top);
  }
  context.stroke();
  context.restore();
}

/**
 * Runs of slots with data, each an area of its own: what is not known is not drawn.
 * @param {CanvasRenderingContext2D} context
 * @param {Timeline} timeline
 * @param {Plot} plot
 * @param {Record<string, string>} colours
 */
export function paintArea(context, timeline, plot, colours) {
  const { times_s, cores, step_s } = timeline;
  const floor = plot.top + plot.height;
  const heightOf = (/** @type {number} */ value) => floor - (value / plot.most) * plot.height;
  for (let from = 0; from < cores.length; from += 1) {
    if (cores[from] === null) continue;
    let until = from;
    while (until < cores.length && cores[until] !== null) until += 1;
    const path = new Path2D();
    for (let at = from; at < until; at += 1) {
      // A point stands in the middle of its slot; the run reaches to the edges of its first and last.
      const y = heightOf(cores[at] ?? 0);
      if (at === from) path.lineTo(xOfTime(times_s[at], timeline, plot), y);
      path.lineTo(xOfTime(times_s[at] + step_s / 2, timeline, plot), y);
      if (at === until - 1) path.lineTo(xOfTime(times_s[at] + step_s, timeline, plot), y);
    }
    const area = new Path2D(path);
    area.lineTo(xOfTime(times_s[until - 1] + step_s, timeline, plot), floor);
    area.lineTo(xOfTime(times_s[from], timeline, plot), floor);
    context.fillStyle = colours["accent-soft"];
    context.fill(area);
    context.strokeStyle = colours.accent;
    context.lineWidth = 1.5;
    context.lineJoin = "round";
    context.stroke(path);
    from = until;
  }
}

/**
 * @param {CanvasRenderingContext2D} context
 * @param {Timeline} timeline
 * @param {Plot} plot
 * @param {Record<string, string>} colours
 */
function paintLoss(context, timeline, plot, colours) {
  context.fillStyle = colours.amber;
  timeline.times_s.forEach((time_s, at) => {
    if (!isLossGrave(timeline.loss[at] ?? 0)) return;
    const left = xOfTime(time_s, timeline, plot);
    const right = xOfTime(time_s + timeline.step_s, timeline, plot);
    context.fillRect(left, plot.top + plot.height - 3, Math.max(1, right - left), 3);
  });
}

/**
 * @param {CanvasRenderingContext2D} context
 * @param {{timeline: {from_s: number, until_s: number}, brush: [number, number] | null}} scene
 * @param {Plot} plot
 * @param {Record<string, string>} colours
 */
export function paintBrush(context, { timeline, brush }, plot, colours) {
  if (!brush) return;
  const [left, right] = brush.map((time_s) => xOfTime(time_s, timeline, plot)).sort((a, b) => a - b);
  context.globalAlpha = 0.16;
  context.fillStyle = colours.accent;
  context.fillRect(left, plot.top, right - left, plot.height);
  context.globalAlpha = 1;
  context.fillRect(left - 0.5, plot.top, 1, plot.height);
  context.fillRect(right - 0.5, plot.top, 1, plot.height);
}

/**
 * @param {CanvasRenderingContext2D} context
 * @param {{timeline: {from_s: number, until_s: number}, cursor_s: number | null, brush: [number, number] | null}} scene
 * @param {Plot} plot
 * @param {Record<string, string>} colours
 */
export function paintCursor(context, { timeline, cursor_s, brush }, plot, colours) {
  if (cursor_s === null || brush) return;
  context.fillStyle = colours["text-secondary"];
  context.fillRect(Math.round(xOfTime(cursor_s, timeline, plot)), plot.top, 1, plot.height);
}
