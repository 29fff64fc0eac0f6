// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";

import { formatPoints, formatRelative, intervalWords, sideWords, stateOfChange, stateWords, verdictWords } from "../../../web/core/diff-words.js";

test("changes are signed points, with a true minus", () => {
  assert.equal(formatPoints(0.0213), "+2.1");
  assert.equal(formatPoints(-0.5), "−50.0");
  assert.equal(formatPoints(0.0079), "+0.79");
  assert.equal(formatPoints(-0.00001), "−< 0.01");
  assert.equal(formatPoints(0), "0");
  assert.equal(formatPoints(Number.NaN), "–");
  assert.equal(intervalWords(-0.001, 0.02), "−0.10 to +2.0");
});

test("a change has a state and words for it", () => {
  const change = { change: 0.1, low: 0.05, high: 0.15, isNoise: false, aTotal: 7, bTotal: 23 };
  assert.equal(stateOfChange(change), "more");
  assert.equal(stateOfChange({ ...change, aTotal: 0 }), "new");
  assert.equal(stateOfChange({ ...change, change: -0.1 }), "less");
  assert.equal(stateOfChange({ ...change, change: -0.1, bTotal: 0 }), "vanished");
  assert.equal(stateOfChange({ ...change, isNoise: true, aTotal: 0 }), "noise");
  assert.equal(stateOfChange({ ...change, change: 0 }), "same");
  assert.equal(stateWords("vanished"), "gone in B");
});

test("the verdict counts, and says one as one", () => {
  assert.equal(verdictWords({ beyond_noise: 7, frames: 1212 }), "7 of 1,212 changed frames are beyond noise at 95 %");
  assert.equal(verdictWords({ beyond_noise: 1, frames: 1 }), "1 of 1 changed frame is beyond noise at 95 %");
  assert.equal(verdictWords({ beyond_noise: 0, frames: 0 }), "No frame changed");
});

test("a side says what it holds, or that it is empty", () => {
  assert.equal(sideWords({ query: 'cpu{service="x"}', total: 61e9, hosts: 1, is_empty: false }), "61 s of CPU, 1 host");
  assert.equal(sideWords({ query: "offcpu", total: 61e9, hosts: 2, is_empty: false }), "61 s waited, 2 hosts");
  const per = { unit: "request", count: 1000, total: 61e6 };
  assert.equal(sideWords({ query: "cpu", total: 61e9, hosts: 2, is_empty: false, per }), "61 s of CPU, 2 hosts, 61 ms a request");
  assert.equal(sideWords({ query: "cpu", total: 0, hosts: 0, is_empty: true }), "no samples in this range");
});

test("relative changes have a sign and no more digits than help", () => {
  assert.deepEqual([0.064, -0.004, 0, 0.123, -1, Infinity].map(formatRelative), ["+6.4 %", "−0.4 %", "0 %", "+12 %", "−100 %", "–"]);
});
