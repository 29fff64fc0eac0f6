// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";

import { COLOUR_ROOT, COLOUR_TRIMMED } from "../../../web/core/colour.js";
import * as trees from "../../../web/core/tree.js";
import { answerOf } from "./answers.mjs";

// all 60: a 41 (b 23, c 11, own 7), d 19 (e 2, own 17)
const ROWS = [
  [1, "a", 7],
  [2, "b", 23],
  [2, "c", 11],
  [1, "d", 17],
  [2, "e", 2],
];

test("columns, rows and parents come from the preorder", () => {
  const tree = trees.treeFromAnswer(answerOf(ROWS));
  assert.deepEqual([...tree.total], [60, 41, 23, 11, 19, 2]);
  assert.deepEqual([...tree.start], [0, 0, 0, 23, 41, 41]);
  assert.deepEqual([...tree.parent], [-1, 0, 1, 1, 0, 4]);
  assert.equal(tree.depthCount, 3);
  assert.deepEqual([...tree.rowOffsets], [0, 1, 3, 6]);
  assert.deepEqual([...tree.rowNodes], [0, 1, 4, 2, 3, 5]);
});

test("root and trimmed frames have colours and names of their own", () => {
  const tree = trees.treeFromAnswer(answerOf([...ROWS, [1, "(trimmed)", 40]]));
  assert.equal(tree.colour[0], COLOUR_ROOT);
  assert.equal(tree.colour[6], COLOUR_TRIMMED);
  assert.equal(trees.nodeName(tree, 0), "all");
  assert.equal(trees.nodeName(tree, 6), "(trimmed: 23 frames, 40.0 %)");
  assert.equal(trees.nodeName(tree, 2), "b");
});

test("names are made visible once, on the way in", () => {
  const tree = trees.treeFromAnswer(answerOf([[1, "a\u0000b", 7]]));
  assert.equal(trees.nodeName(tree, 1), "a␀b");
});

test("walking: widest child, neighbours across parents", () => {
  const tree = trees.treeFromAnswer(answerOf(ROWS));
  assert.equal(trees.widestChild(tree, 0), 1);
  assert.equal(trees.widestChild(tree, 1), 2);
  assert.equal(trees.widestChild(tree, 2), -1);
  assert.equal(trees.rowNeighbour(tree, 3, 1), 5);
  assert.equal(trees.rowNeighbour(tree, 5, 1), -1);
  assert.equal(trees.rowNeighbour(tree, 2, -1), -1);
  assert.equal(trees.nodeOfId(tree, 35), 5);
  assert.equal(trees.nodeOfId(tree, 36), -1);
});

test("matches are walked in order and go round", () => {
  const answer = answerOf(ROWS, { search: { text: "x", matched_total: 25, share: 25 / 60 } });
  answer.nodes.matched = [0, 0, 1, 0, 0, 1];
  const tree = trees.treeFromAnswer(answer);
  assert.equal(trees.nextMatch(tree, -1, 1), 2);
  assert.equal(trees.nextMatch(tree, 2, 1), 5);
  assert.equal(trees.nextMatch(tree, 5, 1), 2);
  assert.equal(trees.nextMatch(tree, 2, -1), 5);
  assert.equal(trees.nextMatch(trees.treeFromAnswer(answerOf(ROWS)), 0, 1), -1);
});

test("a stack of 30,000 frames is a tree like any other", () => {
  const rows = Array.from({ length: 30_000 }, (_, at) => [at + 1, `f${at % 7}`, at === 29_999 ? 23 : 0]);
  const tree = trees.treeFromAnswer(answerOf(rows));
  assert.equal(tree.depthCount, 30_001);
  assert.equal(tree.parent[30_000], 29_999);
  assert.equal(tree.total[0], 23);
});

test("an empty profile is a root of nothing", () => {
  const tree = trees.treeFromAnswer(answerOf([]));
  assert.equal(tree.count, 1);
  assert.equal(tree.total[0], 0);
});

test("threads stand above the frames without being code", () => {
  const answer = answerOf([
    [1, "worker-N", 0],
    [2, "[unknown] x+0x1", 7],
  ]);
  answer.functions.code = [9, 9];
  const tree = trees.treeFromAnswer(answer, { hasThreads: true });
  assert.equal(tree.colour[1], COLOUR_ROOT);
  assert.equal(tree.functions[0].code, trees.CODE_NONE);
  assert.equal(tree.functions[1].code, 9);
});
