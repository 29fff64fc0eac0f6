// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";

import { linePath, pairBars, percentOf } from "../../../web/core/chart.js";

test("a line goes through the middles of its slots and breaks where nothing is", () => {
  const box = { width_px: 60, height_px: 10, most: 5 };
  assert.equal(linePath([0, 5, null, 2.5, null, null], box), "M5.0 10.0L15.0 0.0M32.5 5.0h5.0");
  assert.equal(linePath([], box), "");
  assert.equal(linePath([0, 0], { ...box, most: 0 }), "M15.0 10.0L45.0 10.0");
});

test("bars of both sides have one scale, what is nothing has no bar", () => {
  const { a, b } = pairBars([2, 0], [4], { width_px: 36, height_px: 8 });
  assert.equal(a, "M0.0 8v-4.0h9.0v4.0z");
  assert.equal(b, "M26.0 8v-8.0h9.0v8.0z");
  assert.deepEqual(pairBars([], [], { width_px: 36, height_px: 8 }), { a: "", b: "" });
});

test("a time outside of a chart stands at its edge", () => {
  const span = { from_s: 100, until_s: 200 };
  assert.deepEqual([150, 7, 999].map((time) => percentOf(time, span)), [50, 0, 100]);
});
