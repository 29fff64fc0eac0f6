// SPDX-License-Identifier: Apache-2.0
/** TCP in the words of people: who a peer is, how many segments were sent again, what of it is too much. */

import { formatBytes } from "./units.js";

/** Share of segments sent again from which on a connection is felt to be slow. */
export const RETRANSMITS_GRAVE = 0.01;

/**
 * @typedef {import("../views/object-table.js").ObjectRow} ObjectRow
 * @typedef {{isOut: boolean, address: string}} PeerName
 */

/**
 * Which side opened, and who stands at the other end: `out 10.0.0.7:5432` is a peer, `in :8080` a port of one's own.
 * @param {string} object
 * @returns {PeerName}
 */
export function peerOfObject(object) {
  if (object.startsWith("in ")) return { isOut: false, address: object.slice(3) };
  return { isOut: true, address: object.startsWith("out ") ? object.slice(4) : object };
}

/**
 * Share of segments that were sent again; null when none were sent.
 * @param {Record<string, number>} values
 */
export function retransmitShare({ retransmits = 0, segments_out = 0 }) {
  return segments_out > 0 ? retransmits / segments_out : null;
}

/**
 * The same over time.
 * @param {import("./kinds.js").ColumnsAnswer} answer
 * @returns {Array<number | null>}
 */
export function retransmitsOverTime({ columns, times_s }) {
  const values = (/** @type {string} */ name) => columns.find((column) => column.name === name)?.values ?? [];
  const [again, sent] = [values("retransmits"), values("segments_out")];
  return times_s.map((_, at) => {
    const out = sent[at];
    return out === null || out === undefined ? null : out > 0 ? (again[at] ?? 0) / out : 0;
  });
}

/**
 * Bytes a second of a column, slot by slot.
 * @param {import("./kinds.js").ColumnsAnswer} answer
 * @param {string} name
 * @returns {Array<number | null>}
 */
export function ratesOf({ columns, times_s, step_s, until_s }, name) {
  const values = columns.find((column) => column.name === name)?.values;
  return times_s.map((time_s, at) => {
    const value = values?.[at];
    const length_s = Math.min(step_s, until_s - time_s);
    if (value === null || length_s <= 0) return null;
    return value === undefined ? 0 : value / length_s;
  });
}

/** @param {number} rate bytes a second */
export function formatRate(rate) {
  return `${formatBytes(rate)}/s`;
}

