// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";

import { frameWords, spokenFrame } from "../../../web/core/frame-words.js";
import { treeFromAnswer } from "../../../web/core/tree.js";
import { answerOf } from "./answers.mjs";

const S = 1e9;
const tree = treeFromAnswer(
  answerOf([
    [1, "a", 20 * S],
    [2, "b", 20 * S],
    [1, "c", 60 * S],
  ]),
);

test("self and total are times first, then shares", () => {
  assert.deepEqual(frameWords(tree, 1, 100 * S).lines, [
    ["total", "40 s · 40.0 %"],
    ["self", "20 s · 20.0 %"],
  ]);
});

test("in a zoomed view both shares are said", () => {
  assert.deepEqual(frameWords(tree, 2, 40 * S).lines[0], ["total", "20 s · 50.0 % of view · 20.0 % of all"]);
});

test("a frame is read out as one sentence", () => {
  assert.equal(spokenFrame(tree, 1, 100 * S), "a; total 40 s, 40.0 %; self 20 s, 20.0 %; depth 1");
});

test("an inlined call says so", () => {
  const answer = answerOf([
    [1, "a", 20 * S],
    [2, "b", 20 * S],
  ]);
  const inlined = treeFromAnswer({ ...answer, nodes: { ...answer.nodes, inlined: [0, 0, 1] } });
  assert.deepEqual(frameWords(inlined, 2, 40 * S).lines.at(-1), ["call", "inlined: its code is part of its caller's"]);
  assert.equal(frameWords(inlined, 1, 40 * S).lines.length, 2);
});
