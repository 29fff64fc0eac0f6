// SPDX-License-Identifier: Apache-2.0
/** Heat maps over log2 buckets of microseconds: which buckets are shown, how hot a count is, where a time stands. */

/**
 * @typedef {{kind: string, from_s: number, until_s: number, step_s: number, times_s: number[], counts: Array<number[] | null>,
 *   p50_ns: Array<number | null>, p99_ns: Array<number | null>}} HeatAnswer
 * @typedef {{low: number, high: number, most: number, total: number}} HeatFrame buckets shown, [low, high); the largest count
 */

/** Fewer rows than this would be a stripe. */
const FEWEST_ROWS = 8;
const US_NS = 1000;

/** Lower edge of a bucket. @param {number} bucket @returns {number} ns */
export function lowerEdge_ns(bucket) {
  return bucket === 0 ? 0 : US_NS * 2 ** (bucket - 1);
}

/**
 * The rows that hold all counts, with one to spare.
 * @param {HeatAnswer} answer
 * @returns {HeatFrame}
 */
export function heatFrame({ counts }) {
  let first = Infinity;
  let last = -1;
  let most = 0;
  let total = 0;
  let buckets = 0;
  for (const row of counts) {
    if (!row) continue;
    buckets = row.length;
    for (let bucket = 0; bucket < row.length; bucket += 1) {
      if (row[bucket] === 0) continue;
      first = Math.min(first, bucket);
      last = Math.max(last, bucket);
      most = Math.max(most, row[bucket]);
      total += row[bucket];
    }
  }
  if (last < 0) return { low: 0, high: FEWEST_ROWS, most: 0, total: 0 };
  const missing = Math.max(0, FEWEST_ROWS - (last - first + 1));
  const low = Math.max(0, first - Math.ceil(missing / 2));
  return { low, high: Math.min(Math.max(buckets, last + 1), Math.max(last + 1, low + FEWEST_ROWS)), most, total };
}

/**
 * How hot a count is, on a scale of logarithms.
 * @param {number} count
 * @param {number} most
 * @returns {number} 0..1; 0 for none
 */
export function heatOf(count, most) {
  if (count <= 0 || most <= 0) return 0;
  return most === 1 ? 1 : 0.12 + 0.88 * (Math.log(count) / Math.log(most));
}

/**
 * Where a time stands between the lowest and the highest row shown.
 * @param {number} value_ns
 * @param {HeatFrame} frame
 * @returns {number} 0 at the lower end, 1 at the upper
 */
export function heightOf(value_ns, { low, high }) {
  const row = value_ns < US_NS ? value_ns / US_NS : 1 + Math.log2(value_ns / US_NS);
  return Math.min(1, Math.max(0, (row - low) / (high - low)));
}

/**
 * The bucket at a height.
 * @param {number} height 0..1
 * @param {HeatFrame} frame
 */
export function bucketAt(height, { low, high }) {
  return Math.min(high - 1, Math.max(low, Math.floor(low + height * (high - low))));
}

/**
 * Rows whose lower edge is labelled: about `wanted` of them, evenly.
 * @param {HeatFrame} frame
 * @param {number} wanted
 */
export function labelledRows({ low, high }, wanted) {
  const step = Math.max(1, Math.ceil((high - low) / wanted));
  const rows = [];
  for (let row = low; row <= high; row += step) rows.push(row);
  return rows;
}

/**
 * Mix the stops of a ramp.
 * @param {ReadonlyArray<readonly [number, number, number]>} stops
 * @param {number} share 0..1
 * @returns {[number, number, number]}
 */
export function rampColour(stops, share) {
  const at = Math.min(0.9999, Math.max(0, share)) * (stops.length - 1);
  const low = Math.floor(at);
  const blend = (/** @type {0 | 1 | 2} */ channel) => Math.round(stops[low][channel] + (stops[low + 1][channel] - stops[low][channel]) * (at - low));
  return [blend(0), blend(1), blend(2)];
}
