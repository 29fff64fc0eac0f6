// SPDX-License-Identifier: Apache-2.0
/** Small charts as paths: lines over slots, bars beside each other. In units of a box of so many pixels, zero at the bottom. */

/**
 * @typedef {{width_px: number, height_px: number, most: number}} Box `most` is the value at the top
 */

/**
 * A line through the middles of slots; slots without a value are gaps, one alone is a dash.
 * @param {ReadonlyArray<number | null>} values
 * @param {Box} box
 */
export function linePath(values, { width_px, height_px, most }) {
  const slot_px = width_px / Math.max(1, values.length);
  const y = (/** @type {number} */ value) => (height_px - (value / (most || 1)) * height_px).toFixed(1);
  let path = "";
  values.forEach((value, at) => {
    if (value === null) return;
    const isFirst = at === 0 || values[at - 1] === null;
    const isLast = at === values.length - 1 || values[at + 1] === null;
    const middle = (at + 0.5) * slot_px;
    if (isFirst && isLast) path += `M${(middle - slot_px / 4).toFixed(1)} ${y(value)}h${(slot_px / 2).toFixed(1)}`;
    else path += `${isFirst ? "M" : "L"}${middle.toFixed(1)} ${y(value)}`;
  });
  return path;
}

/**
 * Bars of two sides, B after A with a gap between, on one scale.
 * @param {readonly number[]} a
 * @param {readonly number[]} b
 * @param {{width_px: number, height_px: number}} box
 * @returns {{a: string, b: string}}
 */
export function pairBars(a, b, { width_px, height_px }) {
  const most = Math.max(1e-12, ...a, ...b);
  const gap = a.length > 0 && b.length > 0 ? 6 : 0;
  const step_px = (width_px - gap) / Math.max(1, a.length + b.length);
  const bar = (/** @type {number} */ x, /** @type {number} */ value) => {
    const size = value > 0 ? Math.max(1, (value / most) * height_px) : 0;
    return size > 0 ? `M${x.toFixed(1)} ${height_px}v${(-size).toFixed(1)}h${Math.max(1, step_px - 1).toFixed(1)}v${size.toFixed(1)}z` : "";
  };
  return {
    a: a.map((value, at) => bar(at * step_px, value)).join(""),
    b: b.map((value, at) => bar(a.length * step_px + gap + at * step_px, value)).join(""),
  };
}

/**
 * Where a time lies on a chart, in hundredths of its width.
 * @param {number} time_s
 * @param {{from_s: number, until_s: number}} span
 */
export function percentOf(time_s, { from_s, until_s }) {
  return Math.max(0, Math.min(100, ((time_s - from_s) / (until_s - from_s || 1)) * 100));
}
