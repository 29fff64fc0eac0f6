// SPDX-License-Identifier: Apache-2.0
/** A service's timeline: cores over time, with its deploys marked. */

import { slotAt } from "../core/scale.js";
import { formatClock, formatCores, formatLoss } from "../core/units.js";
import { paintTimeline, plotOf, xOfTime } from "../draw/timeline-painter.js";
import { makeDeployMarkers } from "./deploy-markers.js";
import { makeTimeCanvas } from "./time-canvas.js";

/** @typedef {import("../draw/timeline-painter.js").Timeline} Timeline */

const HEIGHT_PX = 132;

/**
 * @param {{choose: (range: import("../core/range.js").Range) => void, back: () => void, signal: AbortSignal}} asked
 * @returns {{root: HTMLElement, markers: ReturnType<typeof makeDeployMarkers>, show: (timeline: Timeline) => void}}
 */
export function makeTimeline({ choose, back, signal }) {
  const markers = makeDeployMarkers();
  const chart = makeTimeCanvas({
    label: "CPU over time",
    height_px: HEIGHT_PX,
    signal,
    choose,
    back,
    paint(canvas, /** @type {Timeline} */ timeline, { width_px, height_px, cursor_s, brush }) {
      paintTimeline(canvas, { timeline, width_px, height_px, cursor_s, brush });
      const plot = plotOf(width_px, height_px, 1);
      markers.place((time_s) => xOfTime(time_s, timeline, plot), timeline);
    },
    numbersAt,
  });
  chart.root.append(markers.root);
  return { root: chart.root, markers, show: chart.show };
}

/**
 * @param {Timeline} timeline
 * @param {number} cursor_s
 */
function numbersAt(timeline, cursor_s) {
  const slot = slotAt(timeline.times_s, timeline.step_s, cursor_s);
  const cores = timeline.cores[slot];
  if (slot < 0 || cores === null || cores === undefined) return `${formatClock(cursor_s)}  no data`;
  const lost = timeline.loss[slot] ?? 0;
  return `${formatClock(timeline.times_s[slot])}  ${formatCores(cores)}${lost > 0 ? `  lost on its hosts ${formatLoss(lost)}` : ""}`;
}
