// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";

process.env.TZ = "UTC";
const scale = await import("../../../web/core/scale.js");

test("numbers are round and reach the most", () => {
  assert.deepEqual(scale.numberTicks(13.6, 3), [0, 5, 10, 15]);
  assert.deepEqual(scale.numberTicks(0.07, 3), [0, 0.025, 0.05, 0.075]);
  assert.deepEqual(scale.numberTicks(0, 3), [0, 1]);
  assert.deepEqual(scale.numberTicks(15, 3), [0, 5, 10, 15]);
});

test("times are round and inside", () => {
  // 2026-05-28 20:26:40 UTC, a quarter of an hour
  const ticks = scale.timeTicks(1_780_000_000, 1_780_000_900, 4);
  assert.deepEqual(
    ticks.map(({ label }) => label),
    ["20:30", "20:35", "20:40"],
  );
});

test("a time is in the slot that holds it", () => {
  assert.equal(scale.slotAt([0, 10, 20], 10, 9.9), 0);
  assert.equal(scale.slotAt([0, 10, 20], 10, 10), 1);
  assert.equal(scale.slotAt([0, 10, 20], 10, 30), -1);
  assert.equal(scale.slotAt([0, 10, 20], 10, -1), -1);
  assert.equal(scale.slotAt([], 10, 5), -1);
});
