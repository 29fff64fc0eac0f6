// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";

import {
  comparisonBefore, comparisonOfDeploy, hasSides, rangeBefore, rangeLastWeek, relationWords, sideOf, sidePatch, spanOfBoth, spanOfSide, swapped,
} from "../../../web/core/compare.js";

const BOTH = { a: "cpu{}", aFrom: "1000", aUntil: "1900", aRate: "7", b: 'cpu{host="x"}', bFrom: "1900", bUntil: "2800", bRate: "", shape: "b" };

test("a service is compared with the time right before, of the same length", () => {
  const made = comparisonBefore({ service: 'a"b', hosts: ["h1", "h2"], versions: [], tab: "cpu" }, { from_s: 10_000.4, until_s: 10_900.2 });
  assert.equal(made.a, 'cpu{service="a\\"b",host=~"h1|h2"}');
  assert.equal(made.a, made.b);
  assert.deepEqual([made.aFrom, made.aUntil, made.bFrom, made.bUntil], ["9099", "10000", "10000", "10901"]);
});

test("a deploy leads to its two versions in its two ranges", () => {
  const compare = { a: { version: "1", from_s: 100, until_s: 160 }, b: { version: "2", from_s: 160, until_s: 220 } };
  assert.deepEqual(comparisonOfDeploy({ service: "shop", compare }), {
    a: 'cpu{service="shop",version="1"}', aFrom: "100", aUntil: "160", b: 'cpu{service="shop",version="2"}', bFrom: "160", bUntil: "220", shape: "b",
  });
});

test("swapping twice changes nothing, once everything with the shape", () => {
  assert.deepEqual(swapped(swapped(BOTH)), BOTH);
  assert.deepEqual(sideOf(swapped(BOTH), "a"), sideOf(BOTH, "b"));
  assert.deepEqual([swapped(BOTH).aRate, swapped(BOTH).bRate], ["", "7"]);
  assert.equal(swapped(BOTH).shape, "a");
  assert.equal(swapped({ ...BOTH, shape: "union" }).shape, "union");
});

test("ranges before and a week before keep the length", () => {
  const span = { from_s: 1_000_000, until_s: 1_000_900 };
  assert.deepEqual(rangeBefore(span), { from: "999100", until: "1000000" });
  assert.deepEqual(rangeLastWeek(span), { from: "395200", until: "396100" });
});

test("a week ago is the same time by the clock on the wall", () => {
  const zone = process.env.TZ;
  process.env.TZ = "Europe/Berlin";
  // 30 March 2027, 10:00 to 11:00 in summer time; clocks were changed on the 28th: 167 hours lie between.
  const [b, a] = [Date.UTC(2027, 2, 30, 8) / 1000, Date.UTC(2027, 2, 23, 9) / 1000];
  assert.deepEqual(rangeLastWeek({ from_s: b, until_s: b + 3600 }), { from: String(a), until: String(a + 3600) });
  assert.equal(relationWords({ from_s: a, until_s: a + 3600 }, { from_s: b, until_s: b + 3600 }), "A is a week before B");
  if (zone === undefined) delete process.env.TZ;
  else process.env.TZ = zone;
});

test("a side is put in without touching the other", () => {
  assert.deepEqual(sidePatch("a", { from: "7", until: "9" }), { aFrom: "7", aUntil: "9", at: "" });
  assert.deepEqual(sidePatch("b", { query: "cpu{}" }), { b: "cpu{}", at: "" });
});

test("both sides must be whole", () => {
  assert.equal(hasSides(BOTH), true);
  assert.equal(hasSides({ ...BOTH, aFrom: "" }), false);
});

test("the timeline shows both with a margin, wider when asked, never past now", () => {
  const [a, b] = [spanOfSide(sideOf(BOTH, "a"), 9e9), spanOfSide(sideOf(BOTH, "b"), 9e9)];
  assert.deepEqual(spanOfBoth(a, b, { now_s: 2800, stretch: 1 }), { from_s: 784, until_s: 2800 });
  assert.deepEqual(spanOfBoth(a, b, { now_s: 9e9, stretch: 2 }), { from_s: 0, until_s: 3916 });
});

test("how two ranges stand to each other is said", () => {
  const b = { from_s: 1_000_000, until_s: 1_000_900 };
  const moved = (shift_s, more_s = 0) => ({ from_s: b.from_s + shift_s, until_s: b.until_s + shift_s + more_s });
  assert.equal(relationWords(b, b), "the same minutes");
  assert.equal(relationWords(moved(-900), b), "A is right before B");
  assert.equal(relationWords(moved(900), b), "A is right after B");
  assert.equal(relationWords(moved(-604_800), b), "A is a week before B");
  assert.equal(relationWords(moved(-5000), b), "ranges of one length");
  assert.equal(relationWords(moved(-5000, 60), b), "ranges of different lengths: shares are compared");
});
