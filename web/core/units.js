// SPDX-License-Identifier: Apache-2.0
/** Numbers in the units people say: seconds of CPU, cores, shares with one decimal, ages, sizes. */

const MINUTE_S = 60;
const HOUR_S = 3600;
const DAY_S = 86400;
export const NS_PER_S = 1e9;

/**
 * Three significant digits, no trailing zeros beyond the first decimal: 0.871, 8.7, 61, 1,204.
 * @param {number} value
 */
function digits(value) {
  const size = Math.abs(value);
  if (size >= 100 || Number.isInteger(value)) return Math.round(value).toLocaleString("en-US");
  if (size >= 10) return value.toFixed(1).replace(/\.0$/, "");
  if (size >= 1) return value.toFixed(1);
  return value.toFixed(2);
}

/**
 * A time of CPU: `61 s`, `4.2 ms`, `3.1 min` stays in seconds up to 600 s, then minutes and hours.
 * @param {number} value_ns
 */
export function formatDuration(value_ns) {
  const size = Math.abs(value_ns);
  if (size === 0) return "0 s";
  if (size < 1e3) return `${Math.round(value_ns)} ns`;
  if (size < 1e6) return `${digits(value_ns / 1e3)} µs`;
  if (size < 1e9) return `${digits(value_ns / 1e6)} ms`;
  const value_s = value_ns / NS_PER_S;
  if (Math.abs(value_s) < 600) return `${digits(value_s)} s`;
  if (Math.abs(value_s) < 2 * HOUR_S) return `${digits(value_s / MINUTE_S)} min`;
  return `${digits(value_s / HOUR_S)} h`;
}

/**
 * @param {number} cores
 * @returns {string} `0.87 cores`, `1 core`, `< 0.01 cores`
 */
export function formatCores(cores) {
  return `${formatCoresBare(cores)} ${cores === 1 ? "core" : "cores"}`;
}

/** @param {number} cores */
export function formatCoresBare(cores) {
  if (cores === 0) return "0";
  if (cores < 0.01) return "< 0.01";
  return digits(cores);
}

/**
 * A value on an axis: also where all of the axis is less than formatCoresBare tells apart.
 * @param {number} tick
 */
export function formatTick(tick) {
  return tick > 0 && tick < 0.01 ? String(Number(tick.toPrecision(2))) : formatCoresBare(tick);
}

/**
 * A share with one decimal: `12.3 %`; what is there but rounds to nothing is `< 0.1 %`, what is not quite all never says 100.
 * @param {number} share 0..1
 */
export function formatShare(share) {
  if (!Number.isFinite(share)) return "–";
  if (share === 0) return "0 %";
  if (share < 0.0005) return "< 0.1 %";
  if (share > 0.9995 && share < 1) return "> 99.9 %";
  return `${(share * 100).toFixed(1).replace(/^100\.0$/, "100")} %`;
}

/**
 * A small share where the hundredth matters (losses): `0.00 %`, `0.03 %`, `1.4 %`.
 * @param {number} share 0..1
 */
export function formatLoss(share) {
  if (!Number.isFinite(share)) return "–";
  if (share > 0 && share < 0.00005) return "< 0.01 %";
  return `${(share * 100).toFixed(share < 0.01 ? 2 : 1)} %`;
}

/** @param {number} size_bytes */
export function formatBytes(size_bytes) {
  if (size_bytes < 1024) return `${Math.round(size_bytes)} B`;
  const units = ["KiB", "MiB", "GiB", "TiB"];
  let value = size_bytes;
  let unit = -1;
  while (value >= 1024 && unit < units.length - 1) {
    value /= 1024;
    unit += 1;
  }
  return `${digits(value)} ${units[unit]}`;
}

/** @param {number} count */
export function formatCount(count) {
  return Math.round(count).toLocaleString("en-US");
}

/**
 * How long ago: `now`, `40 s`, `5 min`, `3 h`, `2 d`.
 * @param {number} age_s
 */
export function formatAge(age_s) {
  if (age_s < 1) return "now";
  if (age_s < MINUTE_S) return `${Math.round(age_s)} s`;
  if (age_s < HOUR_S) return `${Math.round(age_s / MINUTE_S)} min`;
  if (age_s < DAY_S) return `${Math.round(age_s / HOUR_S)} h`;
  return `${Math.round(age_s / DAY_S)} d`;
}

/** @param {number} value */
const two = (value) => String(value).padStart(2, "0");

/**
 * Local time of day, `14:02:05`.
 * @param {number} time_s unix seconds
 * @param {boolean} [withSeconds]
 */
export function formatClock(time_s, withSeconds = true) {
  const date = new Date(time_s * 1000);
  const minutes = `${two(date.getHours())}:${two(date.getMinutes())}`;
  return withSeconds ? `${minutes}:${two(date.getSeconds())}` : minutes;
}

/**
 * Local day, `2026-05-04`.
 * @param {number} time_s
 */
export function formatDay(time_s) {
  const date = new Date(time_s * 1000);
  return `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
}

/**
 * A range in local time; the day is said once, and the end's day only when it differs.
 * @param {number} from_s
 * @param {number} until_s
 */
export function formatRange(from_s, until_s) {
  const withSeconds = until_s - from_s < 600;
  const start = `${formatDay(from_s)} ${formatClock(from_s, withSeconds)}`;
  const day = formatDay(until_s);
  const end = formatClock(until_s, withSeconds);
  return day === formatDay(from_s) ? `${start} – ${end}` : `${start} – ${day} ${end}`;
}

/**
 * The zone that local times are in at that time, `UTC`, `UTC+2`, `UTC+5:30`.
 * @param {number} time_s
 */
export function formatZone(time_s) {
  const east_min = -new Date(time_s * 1000).getTimezoneOffset();
  const [hours, minutes] = [Math.floor(Math.abs(east_min) / 60), Math.abs(east_min) % 60];
  const size = minutes === 0 ? String(hours) : `${hours}:${two(minutes)}`;
  return east_min === 0 ? "UTC" : `UTC${east_min > 0 ? "+" : "−"}${size}`;
}
