// SPDX-License-Identifier: Apache-2.0
/** CPU a host, or a request, before and after a deploy: two numbers with their interval, and both versions over time. */

import { linePath, percentOf } from "../core/chart.js";
import { formatRelative } from "../core/diff-words.js";
import { numberTicks, timeTicks } from "../core/scale.js";
import { visibleText } from "../core/text.js";
import { formatClock, formatDuration } from "../core/units.js";
import { element, fill, svgElement } from "./dom.js";
import { errorBar, spreadBars } from "./error-bar.js";

/**
 * @typedef {import("../net/api.js").DeployAnswer} DeployAnswer
 * @typedef {import("../net/api.js").DeployReport} DeployReport
 */

const CHART = Object.freeze({ width_px: 640, height_px: 132 });

/** @returns {{root: HTMLElement, show: (answer: DeployAnswer) => void}} */
export function makeCpuCard() {
  const title = element("h2", {}, "CPU per host");
  const numbers = element("dl", { class: "report-numbers" });
  const chart = element("div", { class: "report-chart" });
  const root = element("section", { class: "card report-cpu", "aria-label": "CPU before and after" },
    element("div", { class: "card-head" }, title), element("div", { class: "report-cpu-body" }, numbers, chart));
  return {
    root,
    show({ deploy, report }) {
      root.hidden = report === null;
      if (!report) return;
      title.textContent = report.cpu.measure;
      fill(numbers, ...numberParts(report));
      fill(chart, ...chartParts(report.series, deploy));
    },
  };
}

/** A value in the report's unit. @param {number | null} value @param {string} unit */
export function formatCpu(value, unit) {
  if (value === null) return "–";
  if (unit !== "cores") return formatDuration(value * 1e9);
  // What is held against each other needs digits: 1.00 and 1.06, not 1 and 1.1.
  return value === 0 ? "0 cores" : `${value >= 100 ? Math.round(value) : value.toPrecision(3)} cores`;
}

/** @param {DeployReport} report */
function numberParts({ cpu, sides }) {
  const side = (/** @type {0 | 1} */ at, /** @type {number | null} */ value) => element("div", { class: "stat" },
    element("dt", {}, element("span", { class: `side-dot ${at ? "is-b" : ""}`, "aria-hidden": "true" }), at ? "after, " : "before, ", element("span", { class: "name" }, visibleText(sides[at].version))),
    element("dd", {}, formatCpu(value, cpu.unit)));
  const { change, low, high } = cpu;
  const hasInterval = change !== null && low !== null && high !== null;
  const words = hasInterval ? `${formatRelative(low)} to ${formatRelative(high)}` : "no interval: too little data";
  const most = hasInterval ? Math.max(0.01, Math.abs(low), Math.abs(high)) : 1;
  const spread = `${cpu.a_replicates.length} and ${cpu.b_replicates.length} parts (hosts, or stretches of time on few hosts), before and after`;
  return [
    side(0, cpu.a),
    side(1, cpu.b),
    element("div", { class: "stat" }, element("dt", {}, "change, 95 % interval"),
      element("dd", { class: cpu.is_noise ? "is-quiet" : change !== null && change > 0 ? "is-more" : "is-less" }, change === null ? "–" : formatRelative(change), element("span", { class: "report-interval is-quiet" }, words)),
      hasInterval && element("dd", {}, errorBar({ change, low, high, isNoise: cpu.is_noise }, most, words))),
    element("div", { class: "stat" }, element("dt", {}, "what it is made from"), element("dd", {}, spreadBars(cpu.a_replicates, cpu.b_replicates, spread))),
  ];
}

/**
 * @param {DeployReport["series"]} series
 * @param {import("../net/api.js").DeployRow} deploy
 */
function chartParts(series, deploy) {
  const ticks = numberTicks(Math.max(0, ...series.before.map(Number), ...series.after.map(Number)), 3);
  const most = ticks[ticks.length - 1];
  const box = { ...CHART, most };
  const words = `Cores per host from ${formatClock(series.from_s, false)} to ${formatClock(series.until_s, false)}, both versions`;
  const lines = ticks.slice(1).map((tick) => svgElement("path", { class: "report-grid", d: `M0 ${(CHART.height_px * (1 - tick / most)).toFixed(1)}H${CHART.width_px}` }));
  const mark = element("span", { class: "report-mark", title: "first seen" }, element("span", { class: "deploy-mark", "aria-hidden": "true" }), element("span", { class: "name" }, visibleText(deploy.version)));
  const at = percentOf(deploy.first_seen_s, series);
  mark.style.left = `${at}%`;
  mark.classList.toggle("is-left", at > 70);
  const times = timeTicks(series.from_s, series.until_s, 7).map(({ time_s, label }) => {
    const tick = element("span", {}, label);
    tick.style.left = `${percentOf(time_s, series)}%`;
    return tick;
  });
  return [
    element("div", { class: "report-plot" },
      svgElement("svg", { viewBox: `0 0 ${CHART.width_px} ${CHART.height_px}`, preserveAspectRatio: "none", role: "img", "aria-label": words },
        ...lines,
        svgElement("path", { class: "report-line", d: linePath(series.before, box) }),
        svgElement("path", { class: "report-line is-b", d: linePath(series.after, box) })),
      element("span", { class: "report-most is-quiet" }, `${most} cores per host`), mark),
    element("div", { class: "report-times is-quiet", "aria-hidden": "true" }, ...times),
  ];
}
