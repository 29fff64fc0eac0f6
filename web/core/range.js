// SPDX-License-Identifier: Apache-2.0
/**
 * Ranges of time as the URL and the API write them: `-15m`, `now`, unix seconds, RFC 3339.
 *
 * Ranges are half open. A range is relative when it ends now; only those can be followed live.
 */

/** @typedef {{from: string, until: string}} Range */

export const DEFAULT_RANGE = Object.freeze({ from: "-15m", until: "now" });

/** @type {ReadonlyArray<{from: string, label: string}>} */
export const PRESETS = Object.freeze([
  { from: "-5m", label: "Last 5 minutes" },
  { from: "-15m", label: "Last 15 minutes" },
  { from: "-1h", label: "Last hour" },
  { from: "-3h", label: "Last 3 hours" },
  { from: "-12h", label: "Last 12 hours" },
  { from: "-1d", label: "Last day" },
  { from: "-7d", label: "Last 7 days" },
]);

const UNIT_S = /** @type {Record<string, number>} */ ({ s: 1, m: 60, h: 3600, d: 86400, w: 604800 });
const UNIT_WORDS = /** @type {Record<string, string>} */ ({ s: "second", m: "minute", h: "hour", d: "day", w: "week" });
const RELATIVE = /^-(\d{1,6})([smhdw])$/;
const UNIX = /^\d{1,11}(\.\d{1,9})?$/;
const LOCAL_TIME = /^(\d{4})-(\d{2})-(\d{2})[ T](\d{2}):(\d{2})(?::(\d{2}))?$/;

/**
 * A time as the URL writes it, in unix seconds; NaN when it cannot be read.
 * @param {string} text
 * @param {number} now_s
 */
export function parseTime(text, now_s) {
  const trimmed = text.trim();
  if (trimmed === "now" || trimmed === "") return now_s;
  const relative = RELATIVE.exec(trimmed);
  if (relative) return now_s - Number(relative[1]) * UNIT_S[relative[2]];
  if (UNIX.test(trimmed)) return Number(trimmed);
  const local = LOCAL_TIME.exec(trimmed);
  if (local) {
    const [, year, month, day, hour, minute, second] = local;
    return new Date(+year, +month - 1, +day, +hour, +minute, +(second ?? 0)).getTime() / 1000;
  }
  return /^\d{4}-\d{2}-\d{2}T/.test(trimmed) ? Date.parse(trimmed) / 1000 : Number.NaN;
}

/** @param {Range} range */
export function isRelative(range) {
  return range.until === "now" && RELATIVE.test(range.from);
}

/**
 * The range in unix seconds.
 * @param {Range} range
 * @param {number} now_s
 * @returns {{from_s: number, until_s: number}}
 */
export function resolveRange(range, now_s) {
  return { from_s: parseTime(range.from, now_s), until_s: parseTime(range.until, now_s) };
}

/**
 * What is wrong with a typed range, in words; null when nothing is.
 * @param {Range} range
 * @param {number} now_s
 * @returns {string | null}
 */
export function rangeProblem(range, now_s) {
  const { from_s, until_s } = resolveRange(range, now_s);
  if (!Number.isFinite(from_s)) return `“${range.from}” is no time. Try -2h, or 2026-05-04 14:00.`;
  if (!Number.isFinite(until_s)) return `“${range.until}” is no time. Try now, or 2026-05-04 15:00.`;
  if (until_s <= from_s) return "The end must come after the start.";
  return null;
}

/**
 * A typed range as the URL keeps it: local times become unix seconds, relative ones stay.
 * @param {Range} range
 * @param {number} now_s
 * @returns {Range}
 */
export function normalRange(range, now_s) {
  const keep = (/** @type {string} */ text) => {
    const trimmed = text.trim() || "now";
    return trimmed === "now" || RELATIVE.test(trimmed) ? trimmed : String(parseTime(trimmed, now_s));
  };
  return { from: keep(range.from), until: keep(range.until) };
}

/**
 * @param {number} from_s
 * @param {number} until_s
 * @returns {Range} whole seconds, at least one
 */
export function absoluteRange(from_s, until_s) {
  const start = Math.floor(from_s);
  return { from: String(start), until: String(Math.max(start + 1, Math.ceil(until_s))) };
}

/**
 * `Last 15 minutes`; null when the range is not one that ends now.
 * @param {Range} range
 * @returns {string | null}
 */
export function relativeLabel(range) {
  const match = RELATIVE.exec(range.from);
  if (!match || range.until !== "now") return null;
  const preset = PRESETS.find((each) => each.from === range.from);
  if (preset) return preset.label;
  const count = Number(match[1]);
  return `Last ${count} ${UNIT_WORDS[match[2]]}${count === 1 ? "" : "s"}`;
}

/**
 * How often a followed range is read again: 10 s, and less often when the range is long, so that the cost stays level.
 * @param {Range} range
 */
export function followInterval_s(range) {
  const { from_s, until_s } = resolveRange(range, 0);
  return Math.max(10, Math.round((until_s - from_s) / 360));
}

/**
 * A range twice as long around the same middle, not past now.
 * @param {{from_s: number, until_s: number}} range
 * @param {number} now_s
 * @returns {Range}
 */
export function widerRange({ from_s, until_s }, now_s) {
  const half = (until_s - from_s) / 2;
  return absoluteRange(from_s - half, Math.min(now_s, until_s + half));
}
