// SPDX-License-Identifier: Apache-2.0
/** A heat map of how long things took, over time, with the median and the 99th: a card that reads for itself. */

import { bucketAt, heatFrame, lowerEdge_ns } from "../core/latency.js";
import { slotAt } from "../core/scale.js";
import { formatClock, formatCount, formatDuration } from "../core/units.js";
import { edgeWords, paintHeat } from "../draw/latency-painter.js";
import { plotOf } from "../draw/timeline-painter.js";
import { getJson } from "../net/api.js";
import { element, fill } from "./dom.js";
import { makeLoader } from "./loader.js";
import { makeTimeCanvas } from "./time-canvas.js";

/** @typedef {import("../draw/latency-painter.js").Heat} Heat */

const HEIGHT_PX = 176;

/**
 * @param {{
 *   title: string, what: string, signal: AbortSignal, parameters: () => import("../net/api.js").Parameters | null,
 *   choose: (range: import("../core/range.js").Range) => void, back: () => void, tools?: HTMLElement[],
 *   rename?: () => string, height_px?: number,
 * }} asked `what` is counted ("waits"); `parameters` null means that there is nothing to read; `rename` gives the title of now
 */
export function makeLatencyPanel({ title, what, signal, parameters, choose, back, tools = [], rename = () => title, height_px = HEIGHT_PX }) {
  const heading = element("h2", {}, title);
  const figures = element("p", { class: "card-note latency-figures" });
  const chart = makeTimeCanvas({ label: title, height_px, signal, choose, back, paint: paintHeat, numbersAt: (heat, cursor_s, scene) => numbersAt(heat, cursor_s, scene, what) });
  const picture = element("div", { class: "panel-picture" }, chart.root);
  const root = element("section", { class: "card panel latency-panel", "aria-label": title }, element("div", { class: "card-head" }, heading, figures, ...tools), picture, heatKey());
  const loader = makeLoader(root, { retry: () => load() });
  const load = async ({ isQuiet = false } = {}) => {
    const asked = parameters();
    root.hidden = asked === null;
    if (asked === null) return;
    heading.textContent = rename();
    const answer = await loader.run("Reading the heat map", (stop) => getJson("heatmap", asked, stop), { isQuiet });
    if (!answer) return;
    const frame = heatFrame(answer);
    picture.hidden = frame.total === 0;
    fill(figures, ...(frame.total === 0 ? [] : figuresOf(answer, frame.total, what)));
    if (frame.total === 0) loader.say(element("p", { class: "message-title" }, `No ${what} in this range.`));
    else chart.show({ ...answer, frame });
  };
  return { root, load, cancel: () => loader.cancel() };
}

/**
 * What the whole range has: its largest median and 99th, because quantiles of slots do not add up.
 * @param {import("../core/latency.js").HeatAnswer} answer
 * @param {number} total
 * @param {string} what
 */
function figuresOf({ p50_ns, p99_ns }, total, what) {
  const most = (/** @type {Array<number | null>} */ values) => formatDuration(Math.max(0, ...values.map((value) => value ?? 0)));
  return [
    element("span", {}, `${formatCount(total)} ${what}`),
    element("span", { class: "latency-line is-p50" }, `p50 up to ${most(p50_ns)}`),
    element("span", { class: "latency-line is-p99" }, `p99 up to ${most(p99_ns)}`),
  ];
}

function heatKey() {
  return element("p", { class: "latency-key is-quiet" }, "fewer", element("span", { class: "latency-ramp", "aria-hidden": "true" }), "more, by logarithm");
}

/**
 * @param {Heat} heat
 * @param {number} cursor_s
 * @param {import("./time-canvas.js").Scene} scene
 * @param {string} what
 */
function numbersAt(heat, cursor_s, { y_px, width_px, height_px }, what) {
  const slot = slotAt(heat.times_s, heat.step_s, cursor_s);
  const row = heat.counts[slot];
  if (slot < 0 || !row) return `${formatClock(cursor_s)}  no data`;
  const words = [formatClock(heat.times_s[slot])];
  const plot = plotOf(width_px, height_px, 1);
  if (y_px !== null) {
    const bucket = bucketAt(1 - (y_px - plot.top) / plot.height, heat.frame);
    words.push(`${edgeWords(bucket)}–${bucket + 1 >= row.length ? "∞" : formatDuration(lowerEdge_ns(bucket + 1))}: ${formatCount(row[bucket])} ${what}`);
  }
  const [p50, p99] = [heat.p50_ns[slot], heat.p99_ns[slot]];
  if (p50 !== null && p99 !== null) words.push(`p50 ${formatDuration(p50)}`, `p99 ${formatDuration(p99)}`);
  return words.join("  ");
}
