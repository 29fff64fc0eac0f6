// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";

import { directionOf, sortedRows, toggledSort } from "../../../web/core/order.js";

const COLUMNS = [
  { key: "name", value: (row) => row.name },
  { key: "cores", value: (row) => row.cores, isDescending: true },
];
const ROWS = [
  { name: "b", cores: 7 },
  { name: "a", cores: null },
  { name: "c", cores: 23 },
];
const namesBy = (sort) => sortedRows(ROWS, COLUMNS, sort).map(({ name }) => name).join("");

test("a column sorts its usual way, then the other; what has no value stays last", () => {
  assert.equal(namesBy("cores"), "cba");
  assert.equal(namesBy("-cores"), "bca");
  assert.equal(namesBy("name"), "abc");
  assert.equal(namesBy("-name"), "cba");
});

test("an unknown column leaves the order", () => {
  assert.equal(namesBy("</script>"), "bac");
});

test("a second click turns the order", () => {
  assert.equal(toggledSort("", "cores"), "cores");
  assert.equal(toggledSort("cores", "cores"), "-cores");
  assert.equal(toggledSort("-cores", "cores"), "cores");
});

test("direction is said as it is seen", () => {
  assert.equal(directionOf(COLUMNS[1], "cores"), "descending");
  assert.equal(directionOf(COLUMNS[1], "-cores"), "ascending");
  assert.equal(directionOf(COLUMNS[0], "cores"), "none");
});
