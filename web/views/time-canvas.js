// SPDX-License-Identifier: Apache-2.0
/**
 * A canvas over time: numbers under the pointer, drag to choose a range, double click to go back. Keys do the same. What is painted
 * and said is its owner's.
 */

import { absoluteRange } from "../core/range.js";
import { formatClock } from "../core/units.js";
import { timeOfX } from "../draw/timeline-painter.js";
import { element } from "./dom.js";

const DRAG_FROM_PX = 4;
/** So long it takes to see that a click is not the first of two. */
const DOUBLE_MS = 350;

/**
 * @typedef {{from_s: number, until_s: number, step_s: number}} Span
 * @typedef {{width_px: number, height_px: number, cursor_s: number | null, brush: [number, number] | null, y_px: number | null}} Scene
 *   `y_px` is where the pointer is, null when keys move the cursor
 */

/**
 * @template {Span} T
 * @param {{
 *   label: string, height_px: number, signal: AbortSignal, paint: (canvas: HTMLCanvasElement, shown: T, scene: Scene) => void,
 *   numbersAt: (shown: T, cursor_s: number, scene: Scene) => string, choose: (range: import("../core/range.js").Range) => void,
 *   back: () => void, press?: (shown: T, cursor_s: number, scene: Scene) => void,
 * }} asked `press` is a single click that drew no range
 * @returns {{root: HTMLElement, show: (shown: T) => void, repaint: () => void}}
 */
export function makeTimeCanvas({ label, height_px, signal, paint, numbersAt, choose, back, press }) {
  const canvas = element("canvas", {
    class: "timeline-canvas",
    tabindex: "0",
    role: "application",
    "aria-roledescription": "timeline",
    "aria-label": `${label}. Arrows move, Shift and arrows choose a range, Enter shows it, Backspace goes back.`,
  });
  const numbers = element("p", { class: "timeline-numbers", "aria-live": "polite" });
  const root = element("div", { class: "timeline" }, canvas, numbers);
  /** @type {{shown: T | null, cursor_s: number | null, brush: [number, number] | null, down_px: number | null, y_px: number | null}} */
  const now = { shown: null, cursor_s: null, brush: null, down_px: null, y_px: null };

  const scene = () => ({ width_px: root.clientWidth, height_px, cursor_s: now.cursor_s, brush: now.brush, y_px: now.y_px });
  const repaint = () => {
    if (!now.shown || root.clientWidth === 0) return;
    paint(canvas, now.shown, scene());
    numbers.textContent = wordsAt(now.shown);
  };
  const wordsAt = (/** @type {T} */ shown) => {
    if (now.brush) return `${formatClock(Math.min(...now.brush))} – ${formatClock(Math.max(...now.brush))}`;
    return now.cursor_s === null ? "" : numbersAt(shown, now.cursor_s, scene());
  };
  const timeAt = (/** @type {PointerEvent} */ event) =>
    timeOfX(event.clientX - canvas.getBoundingClientRect().left, /** @type {T} */ (now.shown), root.clientWidth);
  const finish = () => {
    const { brush } = now;
    now.brush = null;
    now.down_px = null;
    if (brush) choose(absoluteRange(Math.min(...brush), Math.max(...brush)));
    repaint();
  };
  let pressing = 0;
  signal.addEventListener("abort", () => clearTimeout(pressing));
  canvas.addEventListener("pointerdown", (event) => {
    clearTimeout(pressing);
    if (!now.shown || event.button !== 0) return;
    canvas.setPointerCapture(event.pointerId);
    now.down_px = event.clientX;
    now.cursor_s = timeAt(event);
  });
  canvas.addEventListener("pointermove", (event) => {
    if (!now.shown) return;
    const time_s = timeAt(event);
    now.y_px = event.offsetY;
    if (now.down_px === null) now.cursor_s = time_s;
    else if (now.brush || Math.abs(event.clientX - now.down_px) >= DRAG_FROM_PX) now.brush = [now.brush?.[0] ?? now.cursor_s ?? time_s, time_s];
    repaint();
  });
  canvas.addEventListener("pointerup", (event) => {
    const { shown, cursor_s, down_px, brush } = now;
    now.y_px = event.offsetY;
    const pressed = scene();
    clearTimeout(pressing);
    if (press && shown && cursor_s !== null && down_px !== null && !brush) pressing = setTimeout(() => press(shown, cursor_s, pressed), DOUBLE_MS);
    finish();
  });
  canvas.addEventListener("pointercancel", () => {
    now.brush = null;
    finish();
  });
  canvas.addEventListener("pointerleave", () => {
    if (now.down_px !== null) return;
    now.cursor_s = null;
    now.y_px = null;
    repaint();
  });
  canvas.addEventListener("dblclick", () => {
    clearTimeout(pressing);
    back();
  });
  canvas.addEventListener("keydown", (event) => {
    if (!now.shown || !takeKey(event, now.shown, now, { finish, back })) return;
    event.preventDefault();
    repaint();
  });
  new ResizeObserver(repaint).observe(root);
  document.documentElement.addEventListener("themechange", repaint, { signal });
  return {
    root,
    repaint,
    show(shown) {
      now.shown = shown;
      repaint();
    },
  };
}

/**
 * @param {KeyboardEvent} event
 * @param {Span} shown
 * @param {{cursor_s: number | null, brush: [number, number] | null, y_px: number | null}} now
 * @param {{finish: () => void, back: () => void}} asked
 * @returns {boolean} whether the key was meant for the canvas
 */
function takeKey(event, { from_s, until_s, step_s }, now, { finish, back }) {
  if (event.key === "ArrowLeft" || event.key === "ArrowRight") {
    const before_s = now.cursor_s ?? (from_s + until_s) / 2;
    const moved_s = before_s + (event.key === "ArrowRight" ? 1 : -1) * step_s;
    now.cursor_s = Math.min(until_s, Math.max(from_s, moved_s));
    now.y_px = null;
    now.brush = event.shiftKey ? [now.brush?.[0] ?? before_s, now.cursor_s] : null;
  } else if (event.key === "Enter" && now.brush) finish();
  else if (event.key === "Escape") now.brush = null;
  else if (event.key === "Backspace") back();
  else return false;
  return true;
}
