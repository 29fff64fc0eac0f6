// SPDX-License-Identifier: Apache-2.0
/** Order of table rows as the address writes it: `cores` is the column's usual direction, `-cores` the other. */

/**
 * @template T
 * @typedef {{key: string, value: (row: T) => string | number | null, isDescending?: boolean}} SortColumn
 */

/**
 * @param {string} sort
 * @returns {{key: string, isReversed: boolean}}
 */
export function parseSort(sort) {
  return sort.startsWith("-") ? { key: sort.slice(1), isReversed: true } : { key: sort, isReversed: false };
}

/**
 * What a click on a column's head makes of the order.
 * @param {string} sort
 * @param {string} key
 */
export function toggledSort(sort, key) {
  return sort === key ? `-${key}` : key;
}

/**
 * A sorted copy; rows without a value come last either way; equal rows keep their order. An unknown column leaves the order.
 * @template T
 * @param {readonly T[]} rows
 * @param {ReadonlyArray<SortColumn<T>>} columns
 * @param {string} sort
 * @returns {T[]}
 */
export function sortedRows(rows, columns, sort) {
  const { key, isReversed } = parseSort(sort);
  const column = columns.find((each) => each.key === key);
  if (!column) return [...rows];
  const sign = (column.isDescending ? -1 : 1) * (isReversed ? -1 : 1);
  return [...rows].sort((first, second) => {
    const [a, b] = [column.value(first), column.value(second)];
    if (a === null || b === null) return a === b ? 0 : a === null ? 1 : -1;
    const order = typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b));
    return order * sign;
  });
}

/**
 * The direction as aria-sort says it.
 * @template T
 * @param {SortColumn<T>} column
 * @param {string} sort
 * @returns {"ascending" | "descending" | "none"}
 */
export function directionOf(column, sort) {
  const { key, isReversed } = parseSort(sort);
  if (key !== column.key) return "none";
  return Boolean(column.isDescending) !== isReversed ? "descending" : "ascending";
}
