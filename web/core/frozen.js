// SPDX-License-Identifier: Apache-2.0
/** Answers of a shared view, found again by what was asked: on another screen, at another time. */

/** What depends on the screen that asks, and not on what is asked. */
const OF_THE_SCREEN = ["width_px"];

/**
 * @param {string} address such as `/api/v1/flamegraph?query=…&width_px=1180`
 * @returns {string} the same for the same question
 */
export function frozenKey(address) {
  const [path, query = ""] = address.split("?");
  const given = new URLSearchParams(query);
  for (const name of OF_THE_SCREEN) given.delete(name);
  given.sort();
  return `${path}?${given}`;
}

/**
 * What shares can be made to last, the usual one second.
 * @type {ReadonlyArray<{label: string, seconds: number}>}
 */
export const EXPIRIES = [
  { label: "1 hour", seconds: 3600 },
  { label: "1 day", seconds: 86_400 },
  { label: "7 days", seconds: 7 * 86_400 },
  { label: "30 days", seconds: 30 * 86_400 },
];

/**
 * How long something still lasts, in words.
 * @param {number} left_s
 */
export function leftWords(left_s) {
  if (left_s < 3600) return `${Math.max(1, Math.round(left_s / 60))} min left`;
  if (left_s < 2 * 86_400) return `${Math.round(left_s / 3600)} h left`;
  return `${Math.round(left_s / 86_400)} d left`;
}
