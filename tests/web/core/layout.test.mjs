// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";

import * as layout from "../../../web/core/layout.js";
import { treeFromAnswer } from "../../../web/core/tree.js";
import { answerOf } from "./answers.mjs";

// all 100: a 60 (b 23, own 37), c 40
const tree = treeFromAnswer(
  answerOf([
    [1, "a", 37],
    [2, "b", 23],
    [1, "c", 40],
  ]),
);

/** @returns {Array<[number, number, number, number]>} node, row, x, width */
function boxesOf(of, window, area) {
  const boxes = layout.layoutRows(of, window, area, layout.makeBoxes(of.count));
  return Array.from({ length: boxes.count }, (_, at) => [boxes.node[at], boxes.row[at], boxes.x_px[at], boxes.width_px[at]]);
}

test("every node stands at its start with its width", () => {
  assert.deepEqual(boxesOf(tree, { start: 0, end: 100 }, { firstRow: 0, endRow: 3, width_px: 1000 }), [
    [0, 0, 0, 1000],
    [1, 1, 0, 600],
    [3, 1, 600, 400],
    [2, 2, 0, 230],
  ]);
});

test("a window shows what is in it, cut at its edges", () => {
  assert.deepEqual(boxesOf(tree, { start: 50, end: 70 }, { firstRow: 0, endRow: 3, width_px: 200 }), [
    [0, 0, 0, 200],
    [1, 1, 0, 100],
    [3, 1, 100, 100],
  ]);
});

test("only the rows asked for are laid out", () => {
  assert.deepEqual(boxesOf(tree, { start: 0, end: 100 }, { firstRow: 2, endRow: 9, width_px: 100 }), [[2, 2, 0, 23]]);
});

test("what is narrower than half a pixel is left out", () => {
  const wide = treeFromAnswer(
    answerOf([
      [1, "a", 996],
      [1, "b", 4],
    ]),
  );
  const area = { firstRow: 1, endRow: 2, width_px: 125 };
  assert.equal(boxesOf(wide, { start: 0, end: 1000 }, area).length, 2);
  assert.equal(boxesOf(wide, { start: 0, end: 1000 }, { ...area, width_px: 124 }).length, 1);
});

test("narrow neighbours of one colour are drawn as one, of two colours as two", () => {
  const rows = Array.from({ length: 10 }, () => [1, "same", 1]);
  const alike = treeFromAnswer(answerOf(rows));
  assert.deepEqual(boxesOf(alike, { start: 0, end: 10 }, { firstRow: 1, endRow: 2, width_px: 10 }), [[1, 1, 0, 10]]);
  const mixed = answerOf(rows.map(([depth, , self], at) => [depth, at % 2 ? "odd" : "even", self]));
  mixed.functions.code = [0, 7];
  assert.equal(boxesOf(treeFromAnswer(mixed), { start: 0, end: 10 }, { firstRow: 1, endRow: 2, width_px: 10 }).length, 10);
});

test("a match is never drawn as one with what does not match", () => {
  const answer = answerOf(Array.from({ length: 4 }, () => [1, "same", 1]), { search: { text: "s", matched_total: 1, share: 0.25 } });
  answer.nodes.matched = [0, 0, 0, 1, 0];
  const boxes = boxesOf(treeFromAnswer(answer), { start: 0, end: 4 }, { firstRow: 1, endRow: 2, width_px: 4 });
  assert.deepEqual(
    boxes.map(([, , x, width]) => [x, width]),
    [
      [0, 2],
      [2, 1],
      [3, 1],
    ],
  );
});

test("hits are half open and agree with a search by eye", () => {
  assert.equal(layout.nodeAt(tree, 0, 0), 0);
  assert.equal(layout.nodeAt(tree, 1, 59.9), 1);
  assert.equal(layout.nodeAt(tree, 1, 60), 3);
  assert.equal(layout.nodeAt(tree, 2, 22.9), 2);
  assert.equal(layout.nodeAt(tree, 2, 23), -1);
  assert.equal(layout.nodeAt(tree, 1, 100), -1);
  assert.equal(layout.nodeAt(tree, -1, 5), -1);
  assert.equal(layout.nodeAt(tree, 3, 5), -1);
});

test("a movement begins at one window and ends at the other", () => {
  const [from, to] = [{ start: 0, end: 100 }, { start: 60, end: 70 }];
  assert.deepEqual(layout.windowBetween(from, to, 0), from);
  assert.deepEqual(layout.windowBetween(from, to, 1), to);
  assert.deepEqual(layout.windowBetween(from, to, 23), to);
});

test("zooming keeps the point under the pointer, and the window inside the whole", () => {
  const near = layout.windowScaled({ start: 0, end: 100 }, { factor: 0.5, about: 40, shift: 0, whole: 100 });
  assert.deepEqual(near, { start: 20, end: 70 });
  assert.deepEqual(layout.windowScaled(near, { factor: 100, about: 40, shift: 0, whole: 100 }), { start: 0, end: 100 });
  assert.deepEqual(layout.windowScaled(near, { factor: 1, about: 20, shift: 900, whole: 100 }), { start: 50, end: 100 });
});
