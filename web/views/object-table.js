// SPDX-License-Identifier: Apache-2.0
/** The rows of a kind by object: calls, locks, peers. One can be chosen; what else is shown is then of it alone. */

import { parseSort, sortedRows } from "../core/order.js";
import { isLossGrave } from "../core/quality.js";
import { countOf, visibleText } from "../core/text.js";
import { formatCount, formatDuration, formatLoss } from "../core/units.js";
import { getJson } from "../net/api.js";
import { makeDataTable } from "./data-table.js";
import { element, fill } from "./dom.js";
import { makeLoader } from "./loader.js";
import { badge } from "./parts.js";

/**
 * @typedef {{counts: number[], p50_ns: number | null, p99_ns: number | null}} Buckets
 * @typedef {{name: string, values: Record<string, number>, histograms: Record<string, Buckets>, errors: Array<{error: string, count: number}>,
 *   first?: Array<{name: string, share: number}>, second?: Array<{name: string, share: number}>, peer?: Peer | null}} ObjectRow
 * @typedef {{service: string, host: string}} Peer
 * @typedef {{kind: string, sort: string, rows: ObjectRow[], rows_total: number, totals: Record<string, number>, seconds: number,
 *   lost: Record<string, number>, lost_share: number}} TableAnswer
 * @typedef {import("./data-table.js").Column<ObjectRow> & {stored?: string}} ObjectColumn `stored` is the server's name of what it orders by
 */

const MOST_ROWS = 300;

/**
 * @param {{
 *   store: import("../state/store.js").Store, title: string, noun: [string, string], none: string, columns: ObjectColumn[], usualSort: string,
 *   parameters: () => import("../net/api.js").Parameters, summary: (answer: TableAnswer) => string,
 *   chosen: () => string, choose: (name: string) => void,
 * }} asked `noun` is what a row is, one and many; `chosen` is the name of the row that is looked at, "" for all
 */
export function makeObjectTable({ store, title, noun, none, columns, usualSort, parameters, summary, chosen, choose }) {
  const [one, many] = noun;
  const all = element("button", { class: "button is-small", type: "button", onclick: () => choose("") }, `All ${many}`);
  const words = element("p", { class: "graph-summary" });
  const note = element("p", { class: "table-note" });
  const table = makeDataTable({
    caption: title,
    columns,
    onSort: (sort) => store.set({ sort }),
    className: "object-table is-cards",
    isSortedAlready: true,
    rowAttributes: (row) => ({ class: `is-pressable${row.name === chosen() ? " is-chosen" : ""}`, "aria-selected": row.name === chosen() ? "true" : null, onclick: () => toggle(row.name) }),
  });
  const toggle = (/** @type {string} */ name) => choose(name === chosen() ? "" : name);
  const picture = element("div", { class: "panel-picture" }, table.root, note);
  const root = element("section", { class: "card panel object-panel", "aria-label": title }, element("div", { class: "card-head" }, element("h2", {}, title), words, all), picture);
  const loader = makeLoader(root, { retry: () => load() });
  /** @type {TableAnswer | null} */
  let shown = null;
  let shownOrder = "";
  /** What the server is to choose the rows by, when there are more than are shown. */
  const order = () => {
    const key = (/** @type {string} */ sort) => columns.find((column) => column.key === parseSort(sort).key)?.stored;
    return key(store.get().sort || usualSort) ?? key(usualSort) ?? "";
  };
  const show = () => {
    all.hidden = chosen() === "";
    if (!shown) return;
    if (order() !== shownOrder && shown.rows.length < shown.rows_total) load();
    const sort = store.get().sort || usualSort;
    table.show(sortedRows(shown.rows, columns, sort), sort);
    fill(words, summary(shown), ...lostWords(shown));
    note.textContent = shown.rows.length < shown.rows_total ? `The first ${formatCount(shown.rows.length)} of ${countOf(shown.rows_total, one)}, by ${shown.sort.replace("_", " ")}.` : "";
    picture.hidden = shown.rows.length === 0;
    if (shown.rows.length === 0) loader.say(element("p", { class: "message-title" }, none));
  };
  const load = async ({ isQuiet = false } = {}) => {
    const sort = order();
    const answer = await loader.run("Reading the table", (stop) => getJson("table", { ...parameters(), sort, limit: MOST_ROWS }, stop), { isQuiet });
    if (!answer) return;
    shown = answer;
    shownOrder = sort;
    loader.clear();
    show();
  };
  return { root, load, show, cancel: () => loader.cancel() };
}

/**
 * What is missing on the hosts of the table, when something is.
 * @param {TableAnswer} answer
 */
function lostWords({ lost, lost_share }) {
  if (lost_share === 0) return [];
  const reasons = Object.entries(lost).map(([reason, count]) => `${reason}: ${formatCount(count)}`);
  return [" ", badge(`lost on its hosts ${formatLoss(lost_share)}`, isLossGrave(lost_share) ? "amber" : "grey", reasons.join(", "))];
}

/**
 * The name of a row as a button, and a quiet line under it.
 * @param {string} name
 * @param {() => void} choose
 * @param {...import("./dom.js").Child} below
 */
export function nameCell(name, choose, ...below) {
  const press = (/** @type {Event} */ event) => {
    event.stopPropagation();
    choose();
  };
  const button = element("button", { class: "function-name name", type: "button", title: visibleText(name), onclick: press }, visibleText(name) || "(no name)");
  return [element("span", { class: "object-name" }, button, ...(below.length > 0 ? [element("span", { class: "object-more is-quiet" }, ...below)] : []))];
}

/**
 * @param {string} key
 * @param {string} label
 * @param {(row: ObjectRow) => number | null} value
 * @param {{format?: (value: number) => string, title?: string, stored?: string}} [how]
 * @returns {ObjectColumn}
 */
export function numberColumn(key, label, value, { format = formatCount, title, stored } = {}) {
  return {
    key,
    label,
    title,
    stored,
    value,
    isDescending: true,
    isNumber: true,
    cell: (row) => {
      const found = value(row);
      return found === null ? "–" : found === 0 ? element("span", { class: "is-quiet" }, format(0)) : format(found);
    },
  };
}

/** Columns of everything that was timed. @param {string} histogram @returns {ObjectColumn[]} */
export function latencyColumns(histogram) {
  const quantile = (/** @type {"p50_ns" | "p99_ns"} */ which) => (/** @type {ObjectRow} */ row) => row.histograms[histogram]?.[which] ?? null;
  return [
    numberColumn("p50", "p50", quantile("p50_ns"), { format: formatDuration, title: "Half took less than this" }),
    numberColumn("p99", "p99", quantile("p99_ns"), { format: formatDuration, title: "99 of 100 took less than this" }),
  ];
}
