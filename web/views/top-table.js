// SPDX-License-Identifier: Apache-2.0
/** The functions of a selection by their own time or with what they call: the graph's full alternative. */

import { parseSort, sortedRows } from "../core/order.js";
import { visibleText } from "../core/text.js";
import { formatCount, formatDuration, formatShare } from "../core/units.js";
import { makeDataTable } from "./data-table.js";
import { element } from "./dom.js";

/**
 * @typedef {import("../net/api.js").TopRow} TopRow
 * @typedef {import("../net/api.js").TopAnswer} TopAnswer
 * @typedef {import("./data-table.js").Column<TopRow>} TopColumn
 */

export const DEFAULT_TOP_SORT = "self";

/**
 * The order the server is asked for: it sorts by self or total; other columns sort what it sent.
 * @param {string} sort
 * @returns {"self" | "total"}
 */
export function serverSort(sort) {
  return parseSort(sort).key === "total" ? "total" : "self";
}

/**
 * @param {{sort: (sort: string) => void, choose: (row: TopRow) => void}} asked
 * @returns {{root: HTMLElement, show: (answer: TopAnswer, sort: string) => void}}
 */
export function makeTopTable({ sort: onSort, choose }) {
  /** Widest share by column of the rows on screen, which the bars are drawn against. */
  const most = { self: 1, total: 1 };
  const table = makeDataTable({
    caption: "Functions by CPU",
    columns: topColumns(choose, most),
    onSort,
    className: "top-table",
    isSortedAlready: true,
    rowAttributes: (row) => ({ class: "is-pressable", onclick: () => choose(row) }),
  });
  const note = element("p", { class: "table-note" });
  const root = element("div", { class: "top" }, table.root, note);
  return {
    root,
    show(answer, sort) {
      const order = sort || DEFAULT_TOP_SORT;
      most.self = Math.max(...answer.rows.map((row) => row.self_share), 1e-9);
      most.total = Math.max(...answer.rows.map((row) => row.total_share), 1e-9);
      table.show(sortedRows(answer.rows, topColumns(choose, most), order), order);
      note.textContent = answer.total === 0 ? "No samples in this range." : noteWords(answer, order);
    },
  };
}

/**
 * @param {TopAnswer} answer
 * @param {string} sort
 */
function noteWords({ rows, rows_total }, sort) {
  if (rows_total === 0) return "No function matches.";
  if (rows.length >= rows_total) return `${formatCount(rows_total)} functions, of the whole selection.`;
  return `The first ${formatCount(rows.length)} of ${formatCount(rows_total)} functions by ${serverSort(sort)} time. Search to see others.`;
}

/**
 * @param {(row: TopRow) => void} choose
 * @param {{self: number, total: number}} most
 * @returns {TopColumn[]}
 */
function topColumns(choose, most) {
  return [
    { key: "name", label: "Function", value: (row) => row.name, cell: (row) => nameCell(row, choose) },
    weightColumn("self", "Self", "Time in the function itself", most),
    weightColumn("total", "Total", "Time in the function and what it calls", most),
  ];
}

/**
 * @param {TopRow} row
 * @param {(row: TopRow) => void} choose
 */
function nameCell(row, choose) {
  const press = (/** @type {Event} */ event) => {
    event.stopPropagation();
    choose(row);
  };
  const name = element("button", { class: "function-name name", type: "button", title: visibleText(row.name), onclick: press }, visibleText(row.name));
  return [name, element("span", { class: "function-binary name" }, visibleText(row.binary))];
}

/**
 * @param {"self" | "total"} key
 * @param {string} label
 * @param {string} title
 * @param {{self: number, total: number}} most
 * @returns {TopColumn}
 */
function weightColumn(key, label, title, most) {
  const share = (/** @type {TopRow} */ row) => (key === "self" ? row.self_share : row.total_share);
  return {
    key,
    label,
    title,
    value: (row) => row[key],
    isDescending: true,
    isNumber: true,
    cell: (row) => {
      const bar = element("span", { class: "weight-bar", "aria-hidden": "true" });
      bar.style.width = `${(share(row) / most[key]) * 100}%`;
      return element("span", { class: "weight" }, bar, element("span", { class: "weight-share" }, formatShare(share(row))), element("span", { class: "is-quiet" }, formatDuration(row[key])));
    },
  };
}
