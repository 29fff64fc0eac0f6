// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";

import { buildLines, frameWords, spokenFrame } from "../../../web/core/frame-words.js";
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

test("the builds of a function are said, the latest first, and are not read out", () => {
  const answer = answerOf([[1, "a", 20 * S]]);
  answer.strings.push("aa11", "bb22", "cc33");
  const at = answer.strings.length;
  const built = treeFromAnswer({ ...answer, functions: { ...answer.functions, builds: [[at - 3, at - 2, at - 1]] } });
  assert.deepEqual(frameWords(built, 1, 20 * S).builds, ["aa11", "bb22", "cc33"]);
  assert.deepEqual(buildLines(["aa11", "bb22", "cc33"]), [["build ids", "cc33, bb22 and 1 more"]]);
  assert.deepEqual(buildLines(["aa11"]), [["build id", "aa11"]]);
  assert.deepEqual(buildLines([]), []);
  assert.doesNotMatch(spokenFrame(built, 1, 20 * S), /build/);
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
