// SPDX-License-Identifier: Apache-2.0
/** Intervals and spreads as small pictures: an error bar around zero, the values of replicates as bars. */

import { pairBars } from "../core/chart.js";
import { intervalWords } from "../core/diff-words.js";
import { svgElement } from "./dom.js";

const BAR = Object.freeze({ width_px: 132, height_px: 18 });
const SPREAD = Object.freeze({ width_px: 132, height_px: 22 });

/**
 * The interval as a line with a dot at the change, on a scale with zero in the middle.
 * @param {{change: number, low: number, high: number, isNoise: boolean}} interval
 * @param {number} most the end of the scale
 * @param {string} [words] read out in place of points
 */
export function errorBar({ change, low, high, isNoise }, most, words = `${intervalWords(low, high)} points`) {
  const { width_px, height_px } = BAR;
  const x = (/** @type {number} */ value) => (width_px / 2 + (value / most) * (width_px / 2 - 4)).toFixed(1);
  const y = height_px / 2;
  const tone = isNoise ? "noise" : change > 0 ? "more" : "less";
  const ends = `M${x(low)} ${y}H${x(high)}M${x(low)} ${y - 3}v6M${x(high)} ${y - 3}v6`;
  return svgElement(
    "svg",
    { class: `error-bar is-${tone}`, viewBox: `0 0 ${width_px} ${height_px}`, role: "img", "aria-label": words },
    svgElement("path", { class: "error-zero", d: `M${width_px / 2} 0V${height_px}` }),
    svgElement("path", { class: "error-line", d: ends }),
    svgElement("circle", { class: "error-dot", cx: x(change), cy: y, r: 3 }),
  );
}

/**
 * The values of both sides' replicates, one bar each.
 * @param {readonly number[]} a
 * @param {readonly number[]} b
 * @param {string} words
 */
export function spreadBars(a, b, words) {
  const { width_px, height_px } = SPREAD;
  const paths = pairBars(a, b, SPREAD);
  return svgElement(
    "svg",
    { class: "spread-bars", viewBox: `0 0 ${width_px} ${height_px}`, role: "img", "aria-label": words },
    svgElement("title", {}, words),
    svgElement("path", { class: "spread-a", d: paths.a }),
    svgElement("path", { class: "spread-b", d: paths.b }),
  );
}
