// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";

import { boxFromText, boxOfCells, cellsOfBox, mostOf, selectionOfBox, shadeOf, textOfBox } from "../../../web/core/heat.js";

const GRID = { from_s: 1000, step_s: 10, slots: 6, hosts: ["a", "b,c", "d~e"] };

test("a box survives its way through the address", () => {
  const box = { from_s: 1010, until_s: 1030, hosts: ["b,c", "d~e"] };
  assert.equal(textOfBox(box), "1010-1030~b%2Cc,d~e");
  assert.deepEqual(boxFromText(textOfBox(box)), box);
  for (const text of ["", "7", "30-10~a", "1-2", "1-2~", "1-2~%E0%A4%A", "x-2~a"]) assert.equal(boxFromText(text), null);
});

test("two cells make a box whichever comes first", () => {
  const box = boxOfCells(GRID, { row: 2, slot: 1 }, { row: 1, slot: 3 });
  assert.deepEqual(box, { from_s: 1010, until_s: 1040, hosts: ["b,c", "d~e"] });
  assert.deepEqual(cellsOfBox(GRID, box), { top: 1, bottom: 3, left: 1, right: 4 });
});

test("what is not on the map is not drawn", () => {
  assert.equal(cellsOfBox(GRID, { from_s: 1010, until_s: 1020, hosts: ["z"] }), null);
  assert.equal(cellsOfBox(GRID, { from_s: 10, until_s: 1000, hosts: ["a"] }), null);
  assert.deepEqual(cellsOfBox(GRID, { from_s: 0, until_s: 9999, hosts: ["a"] }), { top: 0, bottom: 1, left: 0, right: 6 });
});

test("all hosts need no condition", () => {
  const box = { from_s: 1000, until_s: 1060, hosts: ["a", "b,c", "d~e"] };
  assert.deepEqual(selectionOfBox("shop", box, GRID.hosts), { query: 'cpu{service="shop"}', hosts: [], from: "1000", until: "1060" });
  assert.deepEqual(selectionOfBox("shop", { ...box, hosts: ["a"] }, GRID.hosts).hosts, ["a"]);
});

test("shades grow with the logarithm; nothing, zero and the most stand apart", () => {
  assert.deepEqual([null, 0, 0.0001, 1, 8, 8.5].map((value) => shadeOf(value, 8)), [-1, 0, 1, 30, 64, 64]);
  assert.equal(shadeOf(3, 0), 0);
  assert.equal(mostOf([[null, 2], [7, 1]]), 7);
});
