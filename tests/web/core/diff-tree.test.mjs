// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";

import { COLOUR_ROOT, COLOUR_TRIMMED, STEPS } from "../../../web/core/colour.js";
import { DIFF_MORE, DIFF_NEW, DIFF_NOISE } from "../../../web/core/diff-colour.js";
import { changeLines, diffFrameWords, diffTreeFromAnswer, frameMark, spokenDiffFrame } from "../../../web/core/diff-tree.js";
import { answerOf } from "./answers.mjs";

/** all(A 100 s, B 200 s) > main > slow (20 % to 25 %, sure), fresh (new, 5 %), same; and something trimmed. */
function diffOf(more = {}) {
  const answer = answerOf([[1, "main", 40], [2, "slow", 50], [2, "fresh", 10], [2, "same", 80], [2, "(trimmed)", 20]], more);
  const columns = {
    a_total: [100e9, 100e9, 20e9, 0, 40e9, 10e9],
    b_total: [200e9, 200e9, 50e9, 10e9, 80e9, 20e9],
    a_share: [1, 1, 0.2, 0, 0.4, 0.1],
    b_share: [1, 1, 0.25, 0.05, 0.4, 0.1],
    change: [0, 0, 0.05, 0.05, 0, 0],
    low: [0, 0, 0.04, 0.035, -0.01, null],
    high: [0, 0, 0.06, 0.065, 0.01, null],
    is_noise: [1, 1, 0, 0, 1, 0],
  };
  return diffTreeFromAnswer({ a: { per: null }, b: { per: null }, ...answer, nodes: { ...answer.nodes, ...columns } });
}

test("frames are coloured by change, not by kind of code", () => {
  const { colour } = diffOf();
  assert.deepEqual([...colour], [COLOUR_ROOT, DIFF_NOISE, DIFF_MORE * STEPS + 6, DIFF_NEW * STEPS + 6, DIFF_NOISE, COLOUR_TRIMMED]);
});

test("frames above the view are grey: their change is not that of the view", () => {
  const above = [{ name: "all", binary: "", id: 0, total: 7 }, { name: "main", binary: "x", id: 3, total: 7, code: 1 }];
  assert.deepEqual(diffOf({ ancestors: above }).ancestorColour, [COLOUR_ROOT, DIFF_NOISE]);
});

test("a frame tells both shares, the change, its interval and what that is", () => {
  assert.deepEqual(diffFrameWords(diffOf(), 2).lines, [
    ["in A", "20.0 % · 20 s"],
    ["in B", "25.0 % · 50 s"],
    ["change", "+5.0 points (95 %: +4.0 to +6.0)"],
    ["that is", "more in B, beyond noise"],
  ]);
  assert.equal(diffFrameWords(diffOf(), 3).lines[3][1], "new in B");
});

test("what a request takes is said when both sides know how many there were", () => {
  const per = (count) => ({ per: { unit: "request", count, total: 0 } });
  assert.deepEqual(diffFrameWords(diffOf({ a: per(10_000), b: per(20_000) }), 2).lines.at(-1), ["that takes", "2 ms → 2.5 ms a request (+25 %)"]);
  assert.equal(diffFrameWords(diffOf({ a: per(10_000), b: per(20_000) }), 3).lines.at(-1)[1], "0 s → 500 µs a request");
  assert.equal(diffFrameWords(diffOf({ a: per(10_000) }), 2).lines.at(-1)[0], "that is");
});

test("what is trimmed has no interval, and says when it hides a change", () => {
  assert.deepEqual(diffFrameWords(diffOf(), 5).lines.slice(2), [
    ["change", "0 points"],
    ["that is", "some beyond noise: zoom in to see them"],
  ]);
});

test("a sign stands on what changed beyond noise alone", () => {
  const tree = diffOf();
  assert.deepEqual([0, 1, 2, 3, 4, 5].map((node) => frameMark(tree, node).short), ["", "", "+", "+", "", ""]);
  assert.deepEqual([2, 3].map((node) => frameMark(tree, node).long), ["+5.0", "new +5.0"]);
});

test("it is spoken as one sentence", () => {
  assert.equal(spokenDiffFrame(diffOf(), 2), "slow; in A 20.0 %, 20 s; in B 25.0 %, 50 s; change +5.0 points (95 %: +4.0 to +6.0); that is more in B, beyond noise; depth 2");
});

test("a row of the table is told as a frame is", () => {
  const lines = changeLines({ change: -0.1, low: -0.2, high: -0.05, isNoise: false, aTotal: 7e9, bTotal: 0, aShare: 0.1, bShare: 0 });
  assert.equal(lines[3][1], "gone in B");
});
