// SPDX-License-Identifier: Apache-2.0
/** Hosts of a service by how far their profile is from the median one; a press compares a host with the rest. */

import { addressFromState, stateOfComparison } from "../core/route.js";
import { selectorText } from "../core/selector.js";
import { countOf, visibleText } from "../core/text.js";
import { formatShare } from "../core/units.js";
import { getJson } from "../net/api.js";
import { makeDataTable } from "./data-table.js";
import { element } from "./dom.js";
import { makeLoader } from "./loader.js";
import { badge } from "./parts.js";

/**
 * @typedef {import("../core/route.js").State} State
 * @typedef {{name: string, binary: string, code: number, share: number, median: number}} Difference
 * @typedef {{host: string, total: number, distance: number, expected: number, is_odd: number, functions: Difference[]}} OddHost
 */

const SHOWN = 20;

/**
 * @param {import("../state/store.js").Store} store
 * @returns {{root: HTMLElement, load: (how?: {isQuiet?: boolean}) => Promise<void>, cancel: () => void}}
 */
export function makeOddHosts(store) {
  const note = element("p", { class: "is-quiet card-note", role: "status" });
  let address = (/** @type {OddHost} */ _row) => "";
  const table = makeDataTable({ caption: "Hosts by distance from the median profile", columns: columnsFor((row) => address(row)), onSort: () => {}, isSortedAlready: true, className: "is-cards" });
  const body = element("div", { class: "panel-picture" }, table.root);
  const root = element("details", { class: "card panel odd-hosts" }, element("summary", { class: "card-head" }, element("h2", {}, "Odd hosts"), note), body);
  const loader = makeLoader(root, { retry: () => load() });
  const load = async ({ isQuiet = false } = {}) => {
    if (!root.open) return;
    const state = store.get();
    const { service, versions, from, until } = state;
    const labels = { service: [service], version: versions };
    const asked = { query: selectorText("cpu", labels), from, until, limit: SHOWN };
    const answer = await loader.run("Comparing the hosts", (signal) => getJson("odd_hosts", asked, signal), { isQuiet });
    if (!answer) return;
    const range = { from: String(answer.from_s), until: String(answer.until_s) };
    address = (row) => comparison(state, row.host, range);
    note.textContent = answer.is_comparable
      ? `${answer.odd_total > 0 ? countOf(answer.odd_total, "odd one") : "even"}, of ${countOf(answer.hosts_total, "host")}`
      : "fewer than three hosts: nobody can say which one is odd";
    table.show(answer.hosts, "");
  };
  root.addEventListener("toggle", () => load());
  return { root, load, cancel: () => loader.cancel() };
}

/**
 * The host beside all others of its service.
 * @param {State} state
 * @param {string} host
 * @param {{from: string, until: string}} range
 */
function comparison(state, host, { from, until }) {
  const b = selectorText("cpu", { service: [state.service], version: state.versions, host: [host] });
  const a = `${b.slice(0, b.lastIndexOf('host="'))}host!=${b.slice(b.lastIndexOf('host="') + "host=".length)}`;
  return addressFromState(stateOfComparison(state, { a, aFrom: from, aUntil: until, b, bFrom: from, bUntil: until, shape: "b" }));
}

/**
 * @param {(row: OddHost) => string} address
 * @returns {import("./data-table.js").Column<OddHost>[]}
 */
function columnsFor(address) {
  return [
    { key: "host", label: "Host", value: (row) => row.host, isFixed: true, cell: (row) => element("a", { class: "name", href: address(row), "data-route": true, title: "Compare it with the others" }, visibleText(row.host)) },
    { key: "distance", label: "Elsewhere", title: "The part of its time that it spends elsewhere than the median host", value: (row) => row.distance, isFixed: true, isNumber: true, cell: (row) => (row.is_odd ? badge(formatShare(row.distance), "amber", "odd") : formatShare(row.distance)) },
    { key: "expected", label: "By chance", title: "What counting alone makes of it", value: (row) => row.expected, isFixed: true, isNumber: true, cell: (row) => element("span", { class: "is-quiet" }, formatShare(row.expected)) },
    { key: "functions", label: "Where", value: () => 0, isFixed: true, cell: whereCell },
  ];
}

/** @param {OddHost} row */
function whereCell({ functions }) {
  const words = functions.map(({ name, share, median }) => `${visibleText(name)} ${formatShare(share)} instead of ${formatShare(median)}`);
  return element("span", { class: "name is-quiet", title: words.join("; ") }, words[0] ?? "–");
}
