// SPDX-License-Identifier: Apache-2.0
/** The two sides of a comparison: what each selects, when, and how one is made from the other. */

import { absoluteRange, parseTime } from "./range.js";
import { selectorText } from "./selector.js";

/**
 * @typedef {import("./range.js").Range} Range
 * @typedef {"a" | "b"} SideName
 * @typedef {"a" | "b" | "union"} Shape
 * @typedef {{query: string, from: string, until: string}} Side
 * @typedef {{a: string, aFrom: string, aUntil: string, b: string, bFrom: string, bUntil: string, shape: Shape}} CompareState
 * @typedef {{aRate: string, bRate: string}} Rates requests a second of the sides as typed, "" when not said
 * @typedef {{from_s: number, until_s: number}} Span
 */

const WEEK_DAYS = 7;
export const NO_RATES = Object.freeze({ aRate: "", bRate: "" });

/**
 * @param {CompareState} state
 * @param {SideName} name
 * @returns {Side}
 */
export function sideOf(state, name) {
  if (name === "a") return { query: state.a, from: state.aFrom, until: state.aUntil };
  return { query: state.b, from: state.bFrom, until: state.bUntil };
}

/**
 * A change of the state that puts a side there; what was zoomed into is let go.
 * @param {SideName} name
 * @param {Partial<Side>} side
 */
export function sidePatch(name, { query, from, until }) {
  const patch = /** @type {Record<string, string>} */ ({ at: "" });
  if (query !== undefined) patch[name] = query;
  if (from !== undefined) patch[`${name}From`] = from;
  if (until !== undefined) patch[`${name}Until`] = until;
  return patch;
}

/** Both sides are there and have ranges. @param {CompareState} state */
export function hasSides({ a, b, aFrom, aUntil, bFrom, bUntil }) {
  return [a, b, aFrom, aUntil, bFrom, bUntil].every((text) => text !== "");
}

/**
 * A becomes B and B becomes A; the frame that is zoomed into stays, it is the same in both.
 * @param {CompareState & Rates} state
 * @returns {CompareState & Rates}
 */
export function swapped(state) {
  const shape = state.shape === "union" ? "union" : state.shape === "a" ? "b" : "a";
  const a = { a: state.b, aFrom: state.bFrom, aUntil: state.bUntil, aRate: state.bRate };
  return { ...a, b: state.a, bFrom: state.aFrom, bUntil: state.aUntil, bRate: state.aRate, shape };
}

/**
 * @param {Side} side
 * @param {number} now_s
 * @returns {Span} NaN where a time cannot be read
 */
export function spanOfSide({ from, until }, now_s) {
  return { from_s: parseTime(from, now_s), until_s: parseTime(until, now_s) };
}

/** As long, right before. @param {Span} span @returns {Range} */
export function rangeBefore({ from_s, until_s }) {
  return absoluteRange(from_s - (until_s - from_s), from_s);
}

/**
 * The same hours by the clock on the wall a week ago: where clocks were changed in between that is not 168 hours.
 * @param {Span} span
 * @returns {Range}
 */
export function rangeLastWeek({ from_s, until_s }) {
  return absoluteRange(weekBefore(from_s), weekBefore(until_s));
}

/** @param {number} time_s */
function weekBefore(time_s) {
  const date = new Date(time_s * 1000);
  date.setDate(date.getDate() - WEEK_DAYS);
  return date.getTime() / 1000;
}

/**
 * What the timeline shows: both ranges with a margin, wider by `stretch`, not past now.
 * @param {Span} a
 * @param {Span} b
 * @param {{now_s: number, stretch: number}} how
 * @returns {Span}
 */
export function spanOfBoth(a, b, { now_s, stretch }) {
  const [from_s, until_s] = [Math.min(a.from_s, b.from_s), Math.max(a.until_s, b.until_s)];
  const margin_s = Math.max(30, (until_s - from_s) * (0.12 + (stretch - 1) / 2));
  return { from_s: Math.max(0, from_s - margin_s), until_s: Math.max(until_s, Math.min(now_s, until_s + margin_s)) };
}

/**
 * The comparison of a service's view with the time before it.
 * @param {{service: string, hosts: readonly string[], versions: readonly string[], tab: string, waits?: readonly string[], object?: string}} state
 * @param {Span} span
 * @returns {CompareState}
 */
export function comparisonBefore({ service, hosts, versions, tab, waits = [], object = "" }, span) {
  const rows = { class: waits, object: object === "" ? [] : [object] };
  const query = selectorText(tab, { service: [service], host: hosts, version: versions, ...rows });
  const after = absoluteRange(span.from_s, span.until_s);
  const before = rangeBefore({ from_s: Number(after.from), until_s: Number(after.until) });
  return { a: query, aFrom: before.from, aUntil: before.until, b: query, bFrom: after.from, bUntil: after.until, shape: "b" };
}

/**
 * The comparison that a deploy leads to.
 * @param {{service: string, compare: {a: DeploySide, b: DeploySide}}} deploy
 * @typedef {{version: string, from_s: number, until_s: number}} DeploySide
 * @returns {CompareState}
 */
export function comparisonOfDeploy({ service, compare }) {
  const query = (/** @type {string} */ version) => selectorText("cpu", { service: [service], version: [version] });
  const [a, b] = [compare.a, compare.b].map((side) => absoluteRange(side.from_s, side.until_s));
  return { a: query(compare.a.version), aFrom: a.from, aUntil: a.until, b: query(compare.b.version), bFrom: b.from, bUntil: b.until, shape: "b" };
}

/**
 * How the ranges of two sides stand to each other, in words.
 * @param {Span} a
 * @param {Span} b
 */
export function relationWords(a, b) {
  if (a.from_s === b.from_s && a.until_s === b.until_s) return "the same minutes";
  const isAlike = Math.abs(a.until_s - a.from_s - (b.until_s - b.from_s)) < 2;
  if (Math.abs(weekBefore(b.from_s) - a.from_s) < 2 && Math.abs(weekBefore(b.until_s) - a.until_s) < 2) return "A is a week before B";
  if (isAlike && Math.abs(a.until_s - b.from_s) < 2) return "A is right before B";
  if (isAlike && Math.abs(b.until_s - a.from_s) < 2) return "A is right after B";
  return isAlike ? "ranges of one length" : "ranges of different lengths: shares are compared";
}
