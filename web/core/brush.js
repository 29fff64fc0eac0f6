// SPDX-License-Identifier: Apache-2.0
/** Two brushes on one timeline: what a pointer took hold of, and where that leads. Times in unix seconds, never of length zero. */

/**
 * @typedef {import("./compare.js").SideName} SideName
 * @typedef {import("./compare.js").Span} Span
 * @typedef {"from" | "until" | "whole" | "new"} Part
 * @typedef {{side: SideName, part: Part, down_s: number, was: Span}} Grip
 */

const LEAST_S = 1;

/**
 * What is under the pointer: an edge before a body, the active brush before the other, else a new range for the active one.
 * @param {Record<SideName, Span>} spans
 * @param {{time_s: number, near_s: number, active: SideName}} pointer near_s is how close to an edge counts as on it
 * @returns {Grip}
 */
export function gripAt(spans, { time_s, near_s, active }) {
  const order = /** @type {SideName[]} */ (active === "a" ? ["a", "b"] : ["b", "a"]);
  const made = (/** @type {SideName} */ side, /** @type {Part} */ part) => ({ side, part, down_s: time_s, was: spans[side] });
  for (const side of order) {
    const { from_s, until_s } = spans[side];
    const [toFrom, toUntil] = [Math.abs(time_s - from_s), Math.abs(time_s - until_s)];
    if (Math.min(toFrom, toUntil) > near_s) continue;
    // A brush too narrow to have two edges and a middle is moved as a whole.
    if (until_s - from_s < near_s * 1.5) return made(side, "whole");
    return made(side, toFrom < toUntil ? "from" : "until");
  }
  for (const side of order) {
    if (time_s >= spans[side].from_s && time_s < spans[side].until_s) return made(side, "whole");
  }
  return made(active, "new");
}

/**
 * The span of a brush that has been dragged to a time.
 * @param {Grip} grip
 * @param {number} time_s
 * @returns {Span}
 */
export function draggedSpan({ part, down_s, was }, time_s) {
  if (part === "whole") return { from_s: was.from_s + time_s - down_s, until_s: was.until_s + time_s - down_s };
  const fixed = part === "from" ? was.until_s : part === "until" ? was.from_s : down_s;
  const [from_s, until_s] = time_s < fixed ? [time_s, fixed] : [fixed, time_s];
  return { from_s, until_s: Math.max(until_s, from_s + LEAST_S) };
}
