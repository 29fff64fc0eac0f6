// SPDX-License-Identifier: Apache-2.0
/** Tables that sort by their heads. On a narrow screen their rows become cards that carry the column's name. */

import { directionOf, sortedRows, toggledSort } from "../core/order.js";
import { element, fill } from "./dom.js";

/**
 * @template T
 * @typedef {{
 *   key: string, label: string, value: (row: T) => string | number | null, isDescending?: boolean, isNumber?: boolean,
 *   title?: string, cell: (row: T) => import("./dom.js").Child | import("./dom.js").Child[], className?: string, isFixed?: boolean,
 * }} Column `isFixed` cannot be sorted by
 */

/**
 * @template T
 * @typedef {{
 *   root: HTMLElement, show: (rows: readonly T[], sort: string) => void,
 * }} DataTable
 */

/**
 * @template T
 * @param {{
 *   caption: string, columns: ReadonlyArray<Column<T>>, onSort: (sort: string) => void, isSortedAlready?: boolean,
 *   rowAttributes?: (row: T) => import("./dom.js").Attributes, isShown?: (column: Column<T>) => boolean, className?: string,
 * }} options with `isSortedAlready` rows are shown in the order they come
 * @returns {DataTable<T>}
 */
export function makeDataTable({ caption, columns, onSort, rowAttributes = () => ({}), isShown = () => true, isSortedAlready = false, className = "" }) {
  const head = element("tr", { role: "row" });
  const body = element("tbody", { role: "rowgroup" });
  const table = element(
    "table",
    { class: `table ${className}`, role: "table" },
    element("caption", { class: "visually-hidden" }, caption),
    element("thead", { role: "rowgroup" }, head),
    body,
  );
  const root = element("div", { class: "table-scroll", tabindex: "-1" }, table);
  return {
    root,
    show(rows, sort) {
      const active = document.activeElement?.getAttribute("data-sort");
      const shown = columns.filter(isShown);
      fill(head, ...shown.map((column) => headCell(column, sort, onSort)));
      const ordered = isSortedAlready ? rows : sortedRows(rows, columns, sort);
      fill(body, ...ordered.map((row) => tableRow(row, shown, rowAttributes(row))));
      // Sorting by keyboard must not lose the place.
      if (active) head.querySelectorAll("button").forEach((button) => button.dataset.sort === active && button.focus());
    },
  };
}

/**
 * @template T
 * @param {Column<T>} column
 * @param {string} sort
 * @param {(sort: string) => void} onSort
 */
function headCell(column, sort, onSort) {
  const direction = directionOf(column, sort);
  const label = column.isFixed
    ? column.label
    : element(
        "button",
        { type: "button", "data-sort": column.key, onclick: () => onSort(toggledSort(sort, column.key)) },
        column.label,
        element("span", { class: "sort-mark", "aria-hidden": "true" }, direction === "none" ? "" : direction === "ascending" ? "↑" : "↓"),
      );
  const attributes = { scope: "col", role: "columnheader", class: cellClass(column), title: column.title ?? null };
  return element("th", { ...attributes, "aria-sort": column.isFixed ? null : direction }, label);
}

/**
 * @template T
 * @param {T} row
 * @param {ReadonlyArray<Column<T>>} columns
 * @param {import("./dom.js").Attributes} attributes
 */
function tableRow(row, columns, attributes) {
  const cells = columns.map((column, at) => {
    const content = column.cell(row);
    const children = Array.isArray(content) ? content : [content];
    const common = { class: cellClass(column), "data-label": column.label };
    return at === 0
      ? element("th", { ...common, scope: "row", role: "rowheader" }, ...children)
      : element("td", { ...common, role: "cell" }, ...children);
  });
  return element("tr", { role: "row", ...attributes }, ...cells);
}

/**
 * @template T
 * @param {Column<T>} column
 */
function cellClass({ isNumber, className = "", key }) {
  return `column-${key} ${isNumber ? "is-number" : ""} ${className}`.trim();
}
