// SPDX-License-Identifier: Apache-2.0
/** A heat map of hosts by time: what is selected on it as text for the address, cells by place, colours by value. */

import { absoluteRange } from "./range.js";
import { selectorText } from "./selector.js";

/**
 * @typedef {{from_s: number, until_s: number, hosts: string[]}} HeatBox hosts in the order of the map
 * @typedef {{from_s: number, step_s: number, slots: number, hosts: readonly string[]}} Grid
 * @typedef {{row: number, slot: number}} Cell
 */

/** Shades of the ramp. */
export const SHADES = 64;

/** @param {HeatBox} box such as `1780000000-1780000900~web-1,web%2C2` */
export function textOfBox({ from_s, until_s, hosts }) {
  return `${Math.round(from_s)}-${Math.round(until_s)}~${hosts.map(encodeURIComponent).join(",")}`;
}

/**
 * @param {string} text
 * @returns {HeatBox | null} null for what is none
 */
export function boxFromText(text) {
  const found = /^(\d{1,12})-(\d{1,12})~(.+)$/.exec(text);
  if (!found || Number(found[1]) >= Number(found[2])) return null;
  try {
    return { from_s: Number(found[1]), until_s: Number(found[2]), hosts: found[3].split(",").map(decodeURIComponent) };
  } catch {
    return null;
  }
}

/**
 * The box between two cells, both included.
 * @param {Grid} grid
 * @param {Cell} first
 * @param {Cell} second
 * @returns {HeatBox}
 */
export function boxOfCells({ from_s, step_s, hosts }, first, second) {
  const [top, bottom] = [Math.min(first.row, second.row), Math.max(first.row, second.row)];
  const [left, right] = [Math.min(first.slot, second.slot), Math.max(first.slot, second.slot)];
  return { from_s: from_s + left * step_s, until_s: from_s + (right + 1) * step_s, hosts: hosts.slice(top, bottom + 1) };
}

/**
 * Where a box lies on a map, in rows and slots; its hosts may have moved apart: all rows between them are in.
 * @param {Grid} grid
 * @param {HeatBox} box
 * @returns {{top: number, bottom: number, left: number, right: number} | null} half open; null when nothing of it is on the map
 */
export function cellsOfBox({ from_s, step_s, slots, hosts }, box) {
  const rows = box.hosts.map((host) => hosts.indexOf(host)).filter((row) => row >= 0);
  const left = Math.max(0, (box.from_s - from_s) / step_s);
  const right = Math.min(slots, (box.until_s - from_s) / step_s);
  if (rows.length === 0 || right <= left) return null;
  return { top: Math.min(...rows), bottom: Math.max(...rows) + 1, left, right };
}

/**
 * What a box selects; all hosts of the map need no condition.
 * @param {string} service
 * @param {HeatBox} box
 * @param {readonly string[]} all
 * @returns {{query: string, hosts: string[], from: string, until: string}}
 */
export function selectionOfBox(service, box, all) {
  const isAll = all.length > 0 && all.every((host) => box.hosts.includes(host));
  const hosts = isAll ? [] : box.hosts;
  return { query: selectorText("cpu", { service: [service], host: hosts }), hosts, ...absoluteRange(box.from_s, box.until_s) };
}

/**
 * Which of the ramp's shades a value has: -1 for nothing there, 0 for zero, up to SHADES by the logarithm of the value.
 * @param {number | null} value
 * @param {number} most
 */
export function shadeOf(value, most) {
  if (value === null) return -1;
  if (value <= 0 || most <= 0) return 0;
  const share = Math.log1p((value / most) * 31) / Math.log(32);
  return Math.max(1, Math.min(SHADES, Math.ceil(share * SHADES)));
}

/** The largest value of a map. @param {ReadonlyArray<ReadonlyArray<number | null>>} values */
export function mostOf(values) {
  let most = 0;
  for (const row of values) for (const value of row) if (value !== null && value > most) most = value;
  return most;
}
