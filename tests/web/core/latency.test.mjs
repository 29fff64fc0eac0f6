// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";

import * as heat from "../../../web/core/latency.js";

const row = (filled) => Array.from({ length: 32 }, (_, at) => filled[at] ?? 0);
const answer = (...counts) => ({ counts });

test("the rows shown hold all counts, and are never a stripe", () => {
  assert.deepEqual(heat.heatFrame(answer(row({ 10: 7, 12: 2 }), null, row({ 11: 23 }))), { low: 7, high: 15, most: 23, total: 32 });
  assert.deepEqual(heat.heatFrame(answer(row({ 0: 7, 20: 2 }))), { low: 0, high: 21, most: 7, total: 9 });
  assert.deepEqual(heat.heatFrame(answer(row({ 31: 7 }))), { low: 27, high: 32, most: 7, total: 7 });
  assert.deepEqual(heat.heatFrame(answer(null, row({}))), { low: 0, high: 8, most: 0, total: 0 });
});

test("heat grows with the logarithm, none is none and the most is full", () => {
  assert.equal(heat.heatOf(0, 100), 0);
  assert.equal(heat.heatOf(100, 100), 1);
  assert.equal(heat.heatOf(1, 1), 1);
  assert.equal(heat.heatOf(10, 100).toFixed(2), "0.56");
  assert.ok(heat.heatOf(1, 1e9) > 0.1);
});

test("a time stands in its bucket", () => {
  const frame = { low: 0, high: 32 };
  for (const bucket of [1, 7, 20]) {
    const edge_ns = heat.lowerEdge_ns(bucket);
    assert.equal(heat.heightOf(edge_ns, frame), bucket / 32);
    assert.equal(heat.bucketAt(heat.heightOf(edge_ns * 1.3, frame), frame), bucket);
  }
  assert.equal(heat.lowerEdge_ns(0), 0);
  assert.equal(heat.heightOf(500, frame), 0.5 / 32);
  assert.equal(heat.heightOf(1e30, frame), 1);
  assert.equal(heat.bucketAt(1, frame), 31);
});

test("labels are even and few", () => {
  assert.deepEqual(heat.labelledRows({ low: 3, high: 15 }, 4), [3, 6, 9, 12, 15]);
  assert.deepEqual(heat.labelledRows({ low: 0, high: 3 }, 8), [0, 1, 2, 3]);
});

test("a ramp goes through its stops", () => {
  const stops = [[0, 0, 0], [100, 50, 0], [200, 100, 50]];
  assert.deepEqual(heat.rampColour(stops, 0), [0, 0, 0]);
  assert.deepEqual(heat.rampColour(stops, 0.5), [100, 50, 0]);
  assert.deepEqual(heat.rampColour(stops, 0.25), [50, 25, 0]);
  assert.deepEqual(heat.rampColour(stops, 1), [200, 100, 50]);
});
