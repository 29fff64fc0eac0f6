// SPDX-License-Identifier: Apache-2.0
/** A heat map: time to the right, log2 buckets upwards, colour by the logarithm of the count; the median and the 99th over it. */

import { cssColour } from "../core/colour.js";
import { heatOf, heightOf, labelledRows, lowerEdge_ns, rampColour } from "../core/latency.js";
import { formatDuration } from "../core/units.js";
import { paintAxes, paintBrush, paintCursor, paintGaps, plotOf, xOfTime } from "./timeline-painter.js";
import { fitCanvas, tokenColours } from "./surface.js";

/** @typedef {import("../core/latency.js").HeatAnswer & {frame: import("../core/latency.js").HeatFrame}} Heat */

const RAMP = /** @type {const} */ (["heat-0", "heat-1", "heat-2", "heat-3", "heat-4"]);
const RAMP_STEPS = 64;

/**
 * @param {HTMLCanvasElement} canvas
 * @param {Heat} heat
 * @param {import("../views/time-canvas.js").Scene} scene
 */
export function paintHeat(canvas, heat, { width_px, height_px, cursor_s, brush }) {
  const context = fitCanvas(canvas, width_px, height_px);
  const token = tokenColours(["surface-card", "line", "text", "text-secondary", "accent", ...RAMP]);
  const colours = Object.fromEntries(Object.entries(token).map(([name, rgb]) => [name, cssColour(rgb)]));
  const { frame } = heat;
  context.fillStyle = colours["surface-card"];
  context.fillRect(0, 0, width_px, height_px);
  const plot = plotOf(width_px, height_px, frame.high - frame.low);
  const rows = labelledRows(frame, Math.max(3, Math.floor(plot.height / 26)));
  const label = (/** @type {number} */ tick) => edgeWords(tick + frame.low);
  paintAxes(context, { timeline: heat, width_px }, plot, { ticks: rows.map((row) => row - frame.low), colours, label });
  context.save();
  context.beginPath();
  context.rect(plot.left, 0, plot.width, height_px);
  context.clip();
  paintGaps(context, { ...heat, cores: heat.counts }, plot, colours);
  const ramp = Array.from({ length: RAMP_STEPS }, (_, at) => cssColour(rampColour(RAMP.map((name) => token[name]), at / (RAMP_STEPS - 1))));
  paintCells(context, heat, plot, ramp);
  for (const [values, dash] of /** @type {const} */ ([[heat.p50_ns, [3, 3]], [heat.p99_ns, []]])) {
    paintQuantile(context, heat, plot, { values, dash: [...dash], ink: colours.text, casing: colours["surface-card"] });
  }
  context.restore();
  paintBrush(context, { timeline: heat, brush }, plot, colours);
  paintCursor(context, { timeline: heat, cursor_s, brush }, plot, colours);
}

/** A time on the axis: lower edges of buckets are powers of two of microseconds. @param {number} bucket */
export function edgeWords(bucket) {
  const us = lowerEdge_ns(bucket) / 1000;
  if (us < 1) return "0";
  if (us < 1024) return `${us} µs`;
  if (us < 1024 ** 2) return `${us / 1024} ms`;
  return formatDuration((us / 1024 ** 2) * 1e9);
}

/**
 * @param {CanvasRenderingContext2D} context
 * @param {Heat} heat
 * @param {import("./timeline-painter.js").Plot} plot
 * @param {string[]} ramp
 */
function paintCells(context, heat, plot, ramp) {
  const { frame, counts, times_s, step_s, until_s } = heat;
  const row_px = plot.height / (frame.high - frame.low);
  counts.forEach((row, at) => {
    if (!row) return;
    const left = Math.round(xOfTime(times_s[at], heat, plot));
    const right = Math.round(xOfTime(Math.min(times_s[at] + step_s, until_s), heat, plot));
    const gap = right - left >= 6 ? 1 : 0;
    for (let bucket = frame.low; bucket < frame.high; bucket += 1) {
      const heatShare = heatOf(row[bucket] ?? 0, frame.most);
      if (heatShare === 0) continue;
      const top = Math.round(plot.top + plot.height - (bucket - frame.low + 1) * row_px);
      const bottom = Math.round(plot.top + plot.height - (bucket - frame.low) * row_px);
      context.fillStyle = ramp[Math.min(RAMP_STEPS - 1, Math.floor(heatShare * RAMP_STEPS))];
      context.fillRect(left, top, Math.max(1, right - left - gap), Math.max(1, bottom - top - (row_px >= 8 ? 1 : 0)));
    }
  });
}

/**
 * @param {CanvasRenderingContext2D} context
 * @param {Heat} heat
 * @param {import("./timeline-painter.js").Plot} plot
 * @param {{values: Array<number | null>, dash: number[], ink: string, casing: string}} look
 */
function paintQuantile(context, heat, plot, { values, dash, ink, casing }) {
  const path = new Path2D();
  let isOpen = false;
  values.forEach((value, at) => {
    if (value === null) {
      isOpen = false;
      return;
    }
    const x = xOfTime(heat.times_s[at] + heat.step_s / 2, heat, plot);
    const y = plot.top + plot.height * (1 - heightOf(value, heat.frame));
    if (isOpen) path.lineTo(x, y);
    else {
      path.moveTo(x - 0.5, y);
      path.lineTo(x, y);
    }
    isOpen = true;
  });
  context.lineJoin = "round";
  context.globalAlpha = 0.75;
  context.strokeStyle = casing;
  context.lineWidth = 3.5;
  context.stroke(path);
  context.globalAlpha = 1;
  context.strokeStyle = ink;
  context.lineWidth = 1.5;
  context.setLineDash(dash);
  context.stroke(path);
  context.setLineDash([]);
}
