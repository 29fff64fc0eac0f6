// SPDX-License-Identifier: Apache-2.0
/** The timeline of a comparison: one line for each side's selector, and the two ranges as brushes, A grey-blue, B ember. */

import { cssColour } from "../core/colour.js";
import { numberTicks } from "../core/scale.js";
import { fitCanvas, tokenColours } from "./surface.js";
import { paintArea, paintAxes, paintGaps, plotOf, xOfTime } from "./timeline-painter.js";

/**
 * @typedef {import("./timeline-painter.js").Timeline} Timeline
 * @typedef {import("./timeline-painter.js").Plot} Plot
 * @typedef {import("../core/compare.js").SideName} SideName
 * @typedef {import("../core/compare.js").Span} Span
 * @typedef {{
 *   a: Timeline, b: Timeline | null, spans: Record<SideName, Span>, active: SideName, cursor_s: number | null,
 *   width_px: number, height_px: number,
 * }} CompareScene `b` is null when both sides select the same
 */

const FLAG_PX = 16;
const NARROWEST_BRUSH_PX = 3;
const FLAG_FONT = "600 11px system-ui, sans-serif";

/**
 * @param {HTMLCanvasElement} canvas
 * @param {CompareScene} scene
 */
export function paintCompare(canvas, scene) {
  const { a, b, width_px, height_px } = scene;
  const context = fitCanvas(canvas, width_px, height_px);
  const token = tokenColours(["surface-card", "line", "line-strong", "text-secondary", "text", "accent", "accent-ink", "side-a", "side-a-ink"]);
  const colours = Object.fromEntries(Object.entries(token).map(([name, rgb]) => [name, cssColour(rgb)]));
  context.fillStyle = colours["surface-card"];
  context.fillRect(0, 0, width_px, height_px);
  const most = Math.max(0, ...[a, b].flatMap((timeline) => timeline?.cores.map((value) => value ?? 0) ?? []));
  const ticks = numberTicks(most, 3);
  const plot = plotOf(width_px, height_px, ticks[ticks.length - 1]);
  paintAxes(context, { timeline: a, width_px }, plot, { ticks, colours });
  context.save();
  context.beginPath();
  context.rect(plot.left, 0, plot.width, height_px);
  context.clip();
  paintShades(context, scene, plot, colours);
  if (b === null) paintGaps(context, a, plot, colours);
  const clear = "transparent";
  paintArea(context, a, plot, { accent: b ? colours["side-a"] : colours["text-secondary"], "accent-soft": clear });
  if (b) paintArea(context, b, plot, { accent: colours.accent, "accent-soft": clear });
  paintEdges(context, scene, plot, colours);
  context.restore();
  paintFlags(context, scene, plot, colours);
  if (scene.cursor_s !== null) {
    context.fillStyle = colours["text-secondary"];
    context.fillRect(Math.round(xOfTime(scene.cursor_s, a, plot)), plot.top, 1, plot.height);
  }
}

/**
 * Left and right edge of a brush, at least a few pixels apart.
 * @param {Span} span
 * @param {Timeline} timeline
 * @param {Plot} plot
 * @returns {[number, number]}
 */
export function edgesOf({ from_s, until_s }, timeline, plot) {
  const [left, right] = [xOfTime(from_s, timeline, plot), xOfTime(until_s, timeline, plot)];
  const short = Math.max(0, NARROWEST_BRUSH_PX - (right - left));
  return [left - short / 2, right + short / 2];
}

/** @param {Record<string, string>} colours @param {SideName} name */
function fillOf(colours, name) {
  return name === "a" ? colours["side-a"] : colours.accent;
}

/**
 * @param {CanvasRenderingContext2D} context
 * @param {CompareScene} scene
 * @param {Plot} plot
 * @param {Record<string, string>} colours
 */
function paintShades(context, { a, spans, active }, plot, colours) {
  for (const name of /** @type {SideName[]} */ (["a", "b"])) {
    const [left, right] = edgesOf(spans[name], a, plot);
    context.globalAlpha = name === active ? 0.22 : 0.14;
    context.fillStyle = fillOf(colours, name);
    context.fillRect(left, plot.top, right - left, plot.height);
  }
  context.globalAlpha = 1;
}

/**
 * @param {CanvasRenderingContext2D} context
 * @param {CompareScene} scene
 * @param {Plot} plot
 * @param {Record<string, string>} colours
 */
function paintEdges(context, { a, spans, active }, plot, colours) {
  for (const name of /** @type {SideName[]} */ (["a", "b"])) {
    const thick_px = name === active ? 2 : 1;
    context.fillStyle = fillOf(colours, name);
    for (const x of edgesOf(spans[name], a, plot)) context.fillRect(x - thick_px / 2, plot.top, thick_px, plot.height);
  }
}

/**
 * The letters: A at the left edge of its brush, B at the right of its own, so that both are seen when the ranges are one.
 * @param {CanvasRenderingContext2D} context
 * @param {CompareScene} scene
 * @param {Plot} plot
 * @param {Record<string, string>} colours
 */
function paintFlags(context, { a, spans }, plot, colours) {
  const places = /** @type {const} */ ([["a", "A"], ["b", "B"]]);
  context.font = FLAG_FONT;
  context.textAlign = "center";
  context.textBaseline = "middle";
  for (const [name, letter] of places) {
    const [left, right] = edgesOf(spans[name], a, plot);
    const wanted = name === "a" ? left - 1 : right - FLAG_PX + 1;
    const x = Math.min(plot.left + plot.width - FLAG_PX, Math.max(plot.left, wanted));
    context.fillStyle = fillOf(colours, name);
    context.fillRect(x, 0, FLAG_PX, FLAG_PX);
    context.fillStyle = name === "a" ? colours["side-a-ink"] : colours["accent-ink"];
    context.fillText(letter, x + FLAG_PX / 2, FLAG_PX / 2 + 0.5);
  }
  context.textAlign = "left";
}
