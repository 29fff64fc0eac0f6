// SPDX-License-Identifier: Apache-2.0
/** One timeline with two brushes. A drag moves a brush, its edge or draws a new one for the active side; keys do the same. */

import { draggedSpan, gripAt } from "../core/brush.js";
import { absoluteRange } from "../core/range.js";
import { slotAt } from "../core/scale.js";
import { formatClock, formatCores, formatRange } from "../core/units.js";
import { paintCompare } from "../draw/compare-painter.js";
import { plotOf, timeOfX, xOfTime } from "../draw/timeline-painter.js";
import { makeDeployMarkers } from "./deploy-markers.js";
import { element } from "./dom.js";

/**
 * @typedef {import("../draw/timeline-painter.js").Timeline} Timeline
 * @typedef {import("../core/compare.js").SideName} SideName
 * @typedef {import("../core/compare.js").Span} Span
 * @typedef {{
 *   timelines: {a: Timeline, b: Timeline | null} | null, spans: Record<SideName, Span> | null, active: SideName,
 *   grip: import("../core/brush.js").Grip | null, drawn: Record<SideName, Span> | null, cursor_s: number | null,
 * }} Now `drawn` holds spans that were moved and not yet taken
 */

const HEIGHT_PX = 132;
const NEAR_PX = 6;
const DRAG_FROM_PX = 3;

/**
 * @param {{choose: (side: SideName, range: import("../core/range.js").Range) => void, activate: (side: SideName) => void, signal: AbortSignal}} asked
 */
export function makeCompareTimeline({ choose, activate, signal }) {
  const canvas = element("canvas", {
    class: "timeline-canvas",
    tabindex: "0",
    role: "application",
    "aria-roledescription": "timeline with two ranges",
    "aria-label": "Ranges A and B over time. A and B choose which one, arrows move it, Shift and arrows move its end, Enter takes it, Escape puts it back.",
  });
  const numbers = element("p", { class: "timeline-numbers", "aria-live": "polite" });
  const root = element("div", { class: "timeline" }, canvas, numbers);
  const markers = makeDeployMarkers();
  root.append(markers.root);
  /** @type {Now} */
  const now = { timelines: null, spans: null, active: "b", grip: null, drawn: null, cursor_s: null };

  const paint = () => {
    if (!now.timelines || !now.spans || root.clientWidth === 0) return;
    const { timelines, active, cursor_s } = now;
    const spans = now.drawn ?? now.spans;
    const [width_px, height_px] = [root.clientWidth, HEIGHT_PX];
    paintCompare(canvas, { ...timelines, spans, active, cursor_s: now.drawn ? null : cursor_s, width_px, height_px });
    numbers.textContent = now.drawn ? spanWords(active, spans[active]) : cursorWords(timelines, cursor_s);
    const plot = plotOf(width_px, height_px, 1);
    markers.place((time_s) => xOfTime(time_s, /** @type {Timeline} */ (timelines.a), plot), timelines.a);
  };
  const setActive = (/** @type {SideName} */ side) => {
    now.active = side;
    activate(side);
  };
  const take = () => {
    const { drawn, active } = now;
    now.drawn = null;
    now.grip = null;
    if (drawn) choose(active, absoluteRange(drawn[active].from_s, drawn[active].until_s));
    paint();
  };
  listenToDrag(canvas, now, { paint, setActive, take, width: () => root.clientWidth });
  canvas.addEventListener("keydown", (event) => {
    if (!takeKey(event, now, { setActive, take })) return;
    event.preventDefault();
    paint();
  });
  new ResizeObserver(paint).observe(root);
  document.documentElement.addEventListener("themechange", paint, { signal });
  return {
    root,
    markers,
    /** @param {{a: Timeline, b: Timeline | null}} timelines */
    show(timelines) {
      now.timelines = timelines;
      paint();
    },
    /** @param {Record<SideName, Span>} spans @param {SideName} active */
    setSpans(spans, active) {
      now.spans = spans;
      now.active = active;
      now.drawn = null;
      paint();
    },
  };
}

/**
 * @param {HTMLCanvasElement} canvas
 * @param {Now} now
 * @param {{paint: () => void, setActive: (side: SideName) => void, take: () => void, width: () => number}} asked
 */
function listenToDrag(canvas, now, { paint, setActive, take, width }) {
  let down_px = 0;
  const timeAt = (/** @type {PointerEvent} */ event) =>
    timeOfX(event.clientX - canvas.getBoundingClientRect().left, /** @type {{a: Timeline}} */ (now.timelines).a, width());
  const gripOf = (/** @type {PointerEvent} */ event) => {
    const timeline = /** @type {{a: Timeline}} */ (now.timelines).a;
    const perPixel_s = (timeline.until_s - timeline.from_s) / plotOf(width(), HEIGHT_PX, 1).width;
    return gripAt(/** @type {Record<SideName, Span>} */ (now.spans), { time_s: timeAt(event), near_s: NEAR_PX * perPixel_s, active: now.active });
  };
  canvas.addEventListener("pointerdown", (event) => {
    if (!now.timelines || !now.spans || event.button !== 0) return;
    canvas.setPointerCapture(event.pointerId);
    now.grip = gripOf(event);
    down_px = event.clientX;
    setActive(now.grip.side);
    paint();
  });
  canvas.addEventListener("pointermove", (event) => {
    if (!now.timelines || !now.spans) return;
    if (!now.grip) {
      now.cursor_s = timeAt(event);
      canvas.dataset.over = gripOf(event).part;
    } else if (now.drawn || Math.abs(event.clientX - down_px) >= DRAG_FROM_PX) {
      now.drawn = { ...now.spans, [now.grip.side]: draggedSpan(now.grip, timeAt(event)) };
    }
    paint();
  });
  canvas.addEventListener("pointerup", take);
  canvas.addEventListener("pointercancel", () => {
    now.drawn = null;
    take();
  });
  canvas.addEventListener("pointerleave", () => {
    if (now.grip) return;
    now.cursor_s = null;
    paint();
  });
}

/**
 * @param {KeyboardEvent} event
 * @param {Now} now
 * @param {{setActive: (side: SideName) => void, take: () => void}} asked
 * @returns {boolean} whether the key was meant for the timeline
 */
function takeKey(event, now, { setActive, take }) {
  const { timelines, spans } = now;
  if (!timelines || !spans || event.ctrlKey || event.metaKey || event.altKey) return false;
  const key = event.key.toLowerCase();
  if (key === "a" || key === "b") {
    now.drawn = null;
    setActive(key);
  } else if (key === "arrowleft" || key === "arrowright") {
    const step_s = (key === "arrowright" ? 1 : -1) * timelines.a.step_s;
    const { from_s, until_s } = (now.drawn ?? spans)[now.active];
    const moved = event.shiftKey ? { from_s, until_s: Math.max(from_s + 1, until_s + step_s) } : { from_s: from_s + step_s, until_s: until_s + step_s };
    now.drawn = { ...spans, [now.active]: moved };
  } else if (key === "enter" && now.drawn) take();
  else if (key === "escape") now.drawn = null;
  else return false;
  return true;
}

/** @param {SideName} side @param {Span} span */
function spanWords(side, { from_s, until_s }) {
  return `${side.toUpperCase()}  ${formatRange(from_s, until_s)}`;
}

/**
 * @param {{a: Timeline, b: Timeline | null}} timelines
 * @param {number | null} cursor_s
 */
function cursorWords({ a, b }, cursor_s) {
  if (cursor_s === null) return "";
  const coresAt = (/** @type {Timeline} */ timeline) => {
    const cores = timeline.cores[slotAt(timeline.times_s, timeline.step_s, cursor_s)];
    return cores === null || cores === undefined ? "no data" : formatCores(cores);
  };
  if (!b) return `${formatClock(cursor_s)}  ${coresAt(a)}`;
  return `${formatClock(cursor_s)}  A ${coresAt(a)}  B ${coresAt(b)}`;
}
