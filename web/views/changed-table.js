// SPDX-License-Identifier: Apache-2.0
/** The functions whose share changed: both shares, the change with its interval as an error bar, what it amounts to in words. */

import { formatPoints, requestWords, requestsOf, stateOfChange, stateWords } from "../core/diff-words.js";
import { parseSort, sortedRows } from "../core/order.js";
import { countOf, visibleText } from "../core/text.js";
import { formatShare } from "../core/units.js";
import { makeDataTable } from "./data-table.js";
import { element, fill } from "./dom.js";
import { errorBar } from "./error-bar.js";

/**
 * @typedef {import("../net/api.js").ChangedRow} ChangedRow
 * @typedef {import("../net/api.js").ChangedAnswer} ChangedAnswer
 * @typedef {import("./data-table.js").Column<ChangedRow>} ChangedColumn
 * @typedef {{most: number, requests: {a: number, b: number} | null}} Scale `requests` are those of the sides when both are known
 */

export const DEFAULT_CHANGED_SORT = "change";

/** The order the server is asked for: the rows it leaves out are then the least of it. @param {string} sort */
export function serverChangedSort(sort) {
  const { key } = parseSort(sort);
  return key === "a" || key === "b" ? key : "change";
}

/**
 * A row's change as the graph knows it.
 * @param {ChangedRow} row
 * @returns {import("../core/diff-words.js").Change & {aShare: number, bShare: number}}
 */
export function changeOfRow(row) {
  const { change, low, high, a_total, b_total, a_share, b_share } = row;
  return { change, low, high, isNoise: Boolean(row.is_noise), aTotal: a_total, bTotal: b_total, aShare: a_share, bShare: b_share };
}

/**
 * @param {{sort: (sort: string) => void, choose: (row: ChangedRow) => void}} asked
 * @returns {{root: HTMLElement, show: (answer: ChangedAnswer, sort: string) => void}}
 */
export function makeChangedTable({ sort: onSort, choose }) {
  /** Largest end of an interval among the rows on screen, which all bars share. */
  const scale = /** @type {Scale} */ ({ most: 1, requests: null });
  let isAllShown = false;
  /** @type {{answer: ChangedAnswer, sort: string} | null} */
  let latest = null;
  const columns = changedColumns(choose, scale);
  const table = makeDataTable({
    caption: "Functions by change of their share",
    columns,
    onSort,
    className: "top-table changed-table",
    isSortedAlready: true,
    rowAttributes: (row) => ({ class: `is-pressable ${row.is_noise ? "is-noise" : ""}`, onclick: () => choose(row) }),
  });
  const words = element("span", {});
  const toggle = element("button", { class: "button is-small", type: "button", hidden: true, onclick: () => showAll(!isAllShown) });
  const note = element("p", { class: "table-note changed-note" }, words, toggle);
  const show = (/** @type {ChangedAnswer} */ answer, /** @type {string} */ sort) => {
    latest = { answer, sort };
    const order = sort || DEFAULT_CHANGED_SORT;
    const { rows } = answer;
    const main = rows.filter((row) => !row.is_noise && row.explained_by === null);
    const shown = isAllShown || main.length === 0 ? rows : main;
    scale.requests = requestsOf(answer);
    scale.most = Math.max(1e-6, ...shown.map((row) => Math.max(Math.abs(row.low), Math.abs(row.high))));
    table.show(sortedRows(shown, columns, order), order);
    fill(words, noteWords(rows, main.length));
    toggle.hidden = main.length === 0 || main.length === rows.length;
    toggle.textContent = isAllShown ? "Hide what is noise or explained" : `Show all ${rows.length}`;
  };
  const showAll = (/** @type {boolean} */ isAll) => {
    isAllShown = isAll;
    if (latest) show(latest.answer, latest.sort);
  };
  return { root: element("div", { class: "top" }, table.root, note), show };
}

/**
 * @param {ChangedRow[]} rows
 * @param {number} main how many are beyond noise and not explained by another
 */
function noteWords(rows, main) {
  if (rows.length === 0) return "No function matches.";
  const explained = rows.filter((row) => !row.is_noise && row.explained_by !== null).length;
  if (main + explained === 0) return `None of ${countOf(rows.length, "function")} changed beyond noise.`;
  const below = explained > 0 ? `; ${explained} more ${explained === 1 ? "is" : "are"} explained by those` : "";
  return `${countOf(main, "function")} changed beyond noise${below}.`;
}

/**
 * @param {(row: ChangedRow) => void} choose
 * @param {Scale} scale
 * @returns {ChangedColumn[]}
 */
function changedColumns(choose, scale) {
  return [
    { key: "name", label: "Function", value: (row) => row.name, cell: (row) => nameCell(row, choose, scale.requests) },
    { key: "a", label: "A", title: "Share of side A, with what it calls", value: (row) => row.a_share, isDescending: true, isNumber: true, cell: (row) => formatShare(row.a_share) },
    { key: "b", label: "B", title: "Share of side B, with what it calls", value: (row) => row.b_share, isDescending: true, isNumber: true, cell: (row) => formatShare(row.b_share) },
    {
      key: "change",
      label: "Change",
      title: "In points of share, with its 95 % interval; sorted by size",
      value: (row) => Math.abs(row.change),
      isDescending: true,
      isNumber: true,
      cell: (row) => element("span", { class: `change-number is-${stateOfChange(changeOfRow(row))}` }, formatPoints(row.change)),
    },
    { key: "interval", label: "95 % interval", value: () => null, isFixed: true, cell: (row) => errorBar({ ...row, isNoise: Boolean(row.is_noise) }, scale.most) },
  ];
}

/**
 * @param {ChangedRow} row
 * @param {(row: ChangedRow) => void} choose
 * @param {{a: number, b: number} | null} requests
 */
function nameCell(row, choose, requests) {
  const press = (/** @type {Event} */ event) => {
    event.stopPropagation();
    choose(row);
  };
  const state = stateWords(stateOfChange(changeOfRow(row)));
  const each = requests ? `; ${requestWords(changeOfRow(row), requests)}` : "";
  const explained = row.explained_by === null ? "" : `; explained by ${visibleText(row.explained_by)}`;
  return [
    element("button", { class: "function-name name", type: "button", title: visibleText(row.name), onclick: press }, visibleText(row.name)),
    element("span", { class: "function-binary" }, `${state}${each}${explained}`),
  ];
}
