// SPDX-License-Identifier: Apache-2.0
/** Changes of share in words: signed, in points (hundredths of all CPU of a side), never by colour alone. */

import { spentWords } from "./kinds.js";
import { countOf } from "./text.js";
import { formatCount, formatDuration } from "./units.js";

/**
 * @typedef {{change: number, low: number, high: number, isNoise: boolean, aTotal: number, bTotal: number}} Change
 * @typedef {"more" | "less" | "new" | "vanished" | "noise" | "same"} ChangeState
 */

const MINUS = "−";

/** @param {number} change */
export function changeSign(change) {
  return change > 0 ? "+" : change < 0 ? MINUS : "";
}

/**
 * A change of share in points: `+2.1`, `−0.04`, `0`; what is there but rounds to nothing is `+< 0.01`.
 * @param {number} change -1..1
 */
export function formatPoints(change) {
  if (!Number.isFinite(change)) return "–";
  const points = Math.abs(change) * 100;
  if (points === 0) return "0";
  if (points < 0.005) return `${changeSign(change)}< 0.01`;
  return `${changeSign(change)}${points.toFixed(points < 1 ? 2 : 1)}`;
}

/**
 * A relative change: `+6 %`, `−0.4 %`, `0 %`.
 * @param {number} change 0.06 is 6 % more
 */
export function formatRelative(change) {
  if (!Number.isFinite(change)) return "–";
  const size = Math.abs(change) * 100;
  return `${changeSign(change)}${size >= 9.5 ? Math.round(size) : Number(size.toFixed(1))} %`;
}

/**
 * @param {number} low
 * @param {number} high
 */
export function intervalWords(low, high) {
  return `${formatPoints(low)} to ${formatPoints(high)}`;
}

/**
 * @param {Change} change
 * @returns {ChangeState}
 */
export function stateOfChange({ change, isNoise, aTotal, bTotal }) {
  if (change === 0) return "same";
  if (isNoise) return "noise";
  if (change > 0) return aTotal === 0 ? "new" : "more";
  return bTotal === 0 ? "vanished" : "less";
}

/** @param {ChangeState} state */
export function stateWords(state) {
  const words = { more: "more in B, beyond noise", less: "less in B, beyond noise", new: "new in B", vanished: "gone in B", noise: "within noise", same: "no change" };
  return words[state];
}

/**
 * The head of a diff.
 * @param {{beyond_noise: number, frames: number}} changed
 */
export function verdictWords({ beyond_noise, frames }) {
  if (frames === 0) return "No frame changed";
  const verb = beyond_noise === 1 ? "is" : "are";
  return `${formatCount(beyond_noise)} of ${countOf(frames, "changed frame")} ${verb} beyond noise at 95 %`;
}

/** @typedef {{unit: string, count: number, total: number} | null} Per what values are said per, and how many of it a side has */

/**
 * What stands behind a side: its weight and how many hosts gave it; what a request took when their rate is known.
 * @param {{query: string, total: number, hosts: number, is_empty: boolean, per: Per}} side
 */
export function sideWords({ query, total, hosts, is_empty, per }) {
  if (is_empty) return "no samples in this range";
  const each = per?.unit === "request" ? `, ${formatDuration(per.total)} a request` : "";
  return `${formatDuration(total)} ${spentWords(query)}, ${countOf(hosts, "host")}${each}`;
}

/**
 * How many requests each side served; null unless both are known.
 * @param {{a: {per: Per}, b: {per: Per}}} sides
 * @returns {{a: number, b: number} | null}
 */
export function requestsOf({ a, b }) {
  return a.per?.unit === "request" && b.per?.unit === "request" ? { a: a.per.count, b: b.per.count } : null;
}

/**
 * What a request takes on both sides: `1.2 ms → 1.5 ms a request (+25 %)`.
 * @param {{aTotal: number, bTotal: number}} change
 * @param {{a: number, b: number}} requests
 */
export function requestWords({ aTotal, bTotal }, requests) {
  const [before, after] = [aTotal / requests.a, bTotal / requests.b];
  const relative = before > 0 ? ` (${formatRelative(after / before - 1)})` : "";
  return `${formatDuration(before)} → ${formatDuration(after)} a request${relative}`;
}
