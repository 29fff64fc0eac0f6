// SPDX-License-Identifier: Apache-2.0
/** A service's timeline: numbers under the pointer, drag to choose a range, double click to go back. Keys do the same. */

import { absoluteRange } from "../core/range.js";
import { slotAt } from "../core/scale.js";
import { formatClock, formatCores, formatLoss } from "../core/units.js";
import { paintTimeline, plotOf, timeOfX, xOfTime } from "../draw/timeline-painter.js";
import { makeDeployMarkers } from "./deploy-markers.js";
import { element } from "./dom.js";

/** @typedef {import("../draw/timeline-painter.js").Timeline} Timeline */

const HEIGHT_PX = 132;
const DRAG_FROM_PX = 4;

/**
 * @param {{choose: (range: import("../core/range.js").Range) => void, back: () => void, signal: AbortSignal}} asked
 * @returns {{root: HTMLElement, markers: ReturnType<typeof makeDeployMarkers>, show: (timeline: Timeline) => void}}
 */
export function makeTimeline({ choose, back, signal }) {
  const canvas = element("canvas", {
    class: "timeline-canvas",
    tabindex: "0",
    role: "application",
    "aria-roledescription": "timeline",
    "aria-label": "CPU over time. Arrows move, Shift and arrows choose a range, Enter shows it, Backspace goes back.",
  });
  const numbers = element("p", { class: "timeline-numbers", "aria-live": "polite" });
  const markers = makeDeployMarkers();
  const root = element("div", { class: "timeline" }, canvas, numbers, markers.root);
  /** @type {{timeline: Timeline | null, cursor_s: number | null, brush: [number, number] | null, down_px: number | null}} */
  const now = { timeline: null, cursor_s: null, brush: null, down_px: null };

  const paint = () => {
    if (!now.timeline || root.clientWidth === 0) return;
    const { timeline, cursor_s, brush } = now;
    paintTimeline(canvas, { timeline, width_px: root.clientWidth, height_px: HEIGHT_PX, cursor_s, brush });
    numbers.textContent = numbersAt(timeline, cursor_s, brush);
    const plot = plotOf(root.clientWidth, HEIGHT_PX, 1);
    markers.place((time_s) => xOfTime(time_s, timeline, plot), timeline);
  };
  const timeAt = (/** @type {PointerEvent} */ event) =>
    timeOfX(event.clientX - canvas.getBoundingClientRect().left, /** @type {Timeline} */ (now.timeline), root.clientWidth);
  const finish = () => {
    const brush = now.brush;
    now.brush = null;
    now.down_px = null;
    if (brush && now.timeline) choose(absoluteRange(Math.min(...brush), Math.max(...brush)));
    paint();
  };
  canvas.addEventListener("pointerdown", (event) => {
    if (!now.timeline || event.button !== 0) return;
    canvas.setPointerCapture(event.pointerId);
    now.down_px = event.clientX;
    now.cursor_s = timeAt(event);
  });
  canvas.addEventListener("pointermove", (event) => {
    if (!now.timeline) return;
    const time_s = timeAt(event);
    if (now.down_px === null) now.cursor_s = time_s;
    else if (now.brush || Math.abs(event.clientX - now.down_px) >= DRAG_FROM_PX) now.brush = [now.brush?.[0] ?? now.cursor_s ?? time_s, time_s];
    paint();
  });
  canvas.addEventListener("pointerup", finish);
  canvas.addEventListener("pointercancel", () => {
    now.brush = null;
    finish();
  });
  canvas.addEventListener("pointerleave", () => {
    if (now.down_px !== null) return;
    now.cursor_s = null;
    paint();
  });
  canvas.addEventListener("dblclick", back);
  canvas.addEventListener("keydown", (event) => {
    if (now.timeline && takeKey(event, now, { finish, back })) {
      event.preventDefault();
      paint();
    }
  });
  new ResizeObserver(paint).observe(root);
  document.documentElement.addEventListener("themechange", paint, { signal });
  return {
    root,
    markers,
    show(timeline) {
      now.timeline = timeline;
      paint();
    },
  };
}

/**
 * @param {KeyboardEvent} event
 * @param {{timeline: Timeline | null, cursor_s: number | null, brush: [number, number] | null}} now
 * @param {{finish: () => void, back: () => void}} asked
 * @returns {boolean} whether the key was meant for the timeline
 */
function takeKey(event, now, { finish, back }) {
  const timeline = /** @type {Timeline} */ (now.timeline);
  if (event.key === "ArrowLeft" || event.key === "ArrowRight") {
    const from_s = now.cursor_s ?? (timeline.from_s + timeline.until_s) / 2;
    const moved_s = from_s + (event.key === "ArrowRight" ? 1 : -1) * timeline.step_s;
    now.cursor_s = Math.min(timeline.until_s, Math.max(timeline.from_s, moved_s));
    if (event.shiftKey) now.brush = [now.brush?.[0] ?? from_s, now.cursor_s];
    else now.brush = null;
  } else if (event.key === "Enter" && now.brush) finish();
  else if (event.key === "Escape") now.brush = null;
  else if (event.key === "Backspace") back();
  else return false;
  return true;
}

/**
 * @param {Timeline} timeline
 * @param {number | null} cursor_s
 * @param {[number, number] | null} brush
 */
function numbersAt(timeline, cursor_s, brush) {
  if (brush) {
    const [from_s, until_s] = [Math.min(...brush), Math.max(...brush)];
    return `${formatClock(from_s)} – ${formatClock(until_s)}`;
  }
  if (cursor_s === null) return "";
  const slot = slotAt(timeline.times_s, timeline.step_s, cursor_s);
  const cores = timeline.cores[slot];
  if (slot < 0 || cores === null || cores === undefined) return `${formatClock(cursor_s)}  no data`;
  const lost = timeline.loss[slot] ?? 0;
  return `${formatClock(timeline.times_s[slot])}  ${formatCores(cores)}${lost > 0 ? `  lost ${formatLoss(lost)}` : ""}`;
}
