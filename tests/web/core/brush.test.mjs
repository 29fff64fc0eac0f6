// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";

import { draggedSpan, gripAt } from "../../../web/core/brush.js";

const SPANS = { a: { from_s: 100, until_s: 200 }, b: { from_s: 200, until_s: 300 } };
const grip = (time_s, active = "b", spans = SPANS) => {
  const { side, part } = gripAt(spans, { time_s, near_s: 5, active });
  return `${side} ${part}`;
};

test("edges come before bodies, the active brush before the other", () => {
  assert.equal(grip(150), "a whole");
  assert.equal(grip(103), "a from");
  assert.equal(grip(299), "b until");
  assert.equal(grip(200, "b"), "b from");
  assert.equal(grip(200, "a"), "a until");
});

test("beside both a new range of the active side begins", () => {
  assert.equal(grip(350, "a"), "a new");
  assert.equal(grip(20, "b"), "b new");
});

test("when both are one range, the active one is taken", () => {
  const same = { a: SPANS.a, b: SPANS.a };
  assert.equal(grip(150, "a", same), "a whole");
  assert.equal(grip(150, "b", same), "b whole");
});

test("a brush of a few pixels is moved as a whole", () => {
  assert.equal(grip(101, "a", { ...SPANS, a: { from_s: 100, until_s: 103 } }), "a whole");
});

test("a drag moves, stretches, turns over, and never makes nothing", () => {
  const held = (part) => ({ side: "a", part, down_s: 150, was: SPANS.a });
  assert.deepEqual(draggedSpan(held("whole"), 170), { from_s: 120, until_s: 220 });
  assert.deepEqual(draggedSpan(held("from"), 120), { from_s: 120, until_s: 200 });
  assert.deepEqual(draggedSpan(held("until"), 260), { from_s: 100, until_s: 260 });
  assert.deepEqual(draggedSpan(held("until"), 60), { from_s: 60, until_s: 100 });
  assert.deepEqual(draggedSpan(held("new"), 190), { from_s: 150, until_s: 190 });
  assert.deepEqual(draggedSpan(held("new"), 150), { from_s: 150, until_s: 151 });
});
