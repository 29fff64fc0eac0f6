// SPDX-License-Identifier: Apache-2.0
/** Axes: round steps for numbers and for times, in local time. */

import { formatClock, formatDay } from "./units.js";

const TIME_STEPS_S = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800, 604800];

/**
 * Round numbers from 0 to at least `most`: the last is the axis' end.
 * @param {number} most
 * @param {number} wanted about how many steps
 * @returns {number[]}
 */
export function numberTicks(most, wanted) {
  if (!(most > 0)) return [0, 1];
  const rough = most / wanted;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = ([1, 2, 2.5, 5, 10].find((each) => each * power >= rough * 0.999) ?? 10) * power;
  const count = Math.ceil(most / step - 1e-9);
  return Array.from({ length: count + 1 }, (_, at) => Number((at * step).toPrecision(12)));
}

/**
 * Times at round local clock times inside [from_s, until_s).
 * @param {number} from_s
 * @param {number} until_s
 * @param {number} wanted at most this many
 * @returns {Array<{time_s: number, label: string}>}
 */
export function timeTicks(from_s, until_s, wanted) {
  const step = TIME_STEPS_S.find((each) => (until_s - from_s) / each <= wanted) ?? TIME_STEPS_S[TIME_STEPS_S.length - 1];
  // Aligned to local midnight, so that days and hours are round where the reader lives.
  const shift_s = -new Date(from_s * 1000).getTimezoneOffset() * 60;
  const first = Math.ceil((from_s + shift_s) / step) * step - shift_s;
  const ticks = [];
  for (let time_s = first; time_s < until_s; time_s += step) {
    ticks.push({ time_s, label: step >= 86400 ? formatDay(time_s).slice(5) : formatClock(time_s, step < 60) });
  }
  return ticks;
}

/**
 * The slot that holds a time; -1 outside of all.
 * @param {readonly number[]} starts_s sorted
 * @param {number} step_s
 * @param {number} time_s
 */
export function slotAt(starts_s, step_s, time_s) {
  let low = 0;
  let high = starts_s.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (starts_s[middle] <= time_s) low = middle + 1;
    else high = middle;
  }
  const slot = low - 1;
  return slot >= 0 && time_s < starts_s[slot] + step_s ? slot : -1;
}
