// SPDX-License-Identifier: Apache-2.0
/** Why a graph is empty, and the one click that helps. */

import { absoluteRange } from "../core/range.js";
import { formatClock, formatDay } from "../core/units.js";
import { element } from "./dom.js";

/**
 * @param {import("../core/tree.js").FlamegraphAnswer} answer
 * @param {import("../state/store.js").Store} store
 * @returns {Node[]}
 */
export function emptyGraphWords({ from_s, until_s, nearest_data_s }, store) {
  const { hosts, versions } = store.get();
  const help = [];
  if (nearest_data_s !== null && nearest_data_s !== undefined) {
    const half_s = Math.max(30, (until_s - from_s) / 2);
    const range = absoluteRange(nearest_data_s - half_s, nearest_data_s + half_s);
    const words = `Show the nearest data, ${formatDay(nearest_data_s)} ${formatClock(nearest_data_s)}`;
    help.push(element("button", { class: "button is-primary", type: "button", onclick: () => store.set({ ...range, at: "" }) }, words));
  }
  const isFiltered = hosts.length > 0 || versions.length > 0;
  if (isFiltered) {
    const clear = () => store.set({ hosts: [], versions: [], at: "" });
    help.push(element("button", { class: "button", type: "button", onclick: clear }, "Show all hosts and versions"));
  }
  const why = isFiltered
    ? "No sample of the hosts and versions chosen lies in this range."
    : "The service did not run on a CPU in this range, or no agent was watching.";
  return [
    element("p", { class: "message-title" }, "No samples in this range."),
    element("p", { class: "message-hint" }, why),
    help.length > 0 && element("p", { class: "message-actions" }, ...help),
  ].filter((each) => each instanceof Node);
}
