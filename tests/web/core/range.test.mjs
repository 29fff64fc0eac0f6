// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";

process.env.TZ = "UTC";
const range = await import("../../../web/core/range.js");
const NOW_S = 1_780_000_000; // 2026-05-28 20:26:40 UTC

test("times are read as the API reads them", () => {
  assert.equal(range.parseTime("now", NOW_S), NOW_S);
  assert.equal(range.parseTime("-15m", NOW_S), NOW_S - 900);
  assert.equal(range.parseTime("1779999977.5", NOW_S), 1_779_999_977.5);
  assert.equal(range.parseTime("2026-05-28T20:26:40Z", NOW_S), NOW_S);
  assert.equal(range.parseTime("2026-05-28 20:26", NOW_S), NOW_S - 40);
});

test("what is no time is said with an example", () => {
  assert.match(range.rangeProblem({ from: "yesterday", until: "now" }, NOW_S), /“yesterday” is no time/);
  assert.match(range.rangeProblem({ from: "-1h", until: "-2x" }, NOW_S), /“-2x” is no time/);
  assert.equal(range.rangeProblem({ from: "-1h", until: "-2h" }, NOW_S), "The end must come after the start.");
  assert.equal(range.rangeProblem({ from: "-1h", until: "now" }, NOW_S), null);
});

test("typed local times become unix seconds, relative ones stay", () => {
  assert.deepEqual(range.normalRange({ from: " 2026-05-28 20:26:40 ", until: "" }, NOW_S), { from: "1780000000", until: "now" });
  assert.deepEqual(range.normalRange({ from: "-7h", until: "-23m" }, NOW_S), { from: "-7h", until: "-23m" });
});

test("only a range that ends now can be followed", () => {
  assert.equal(range.isRelative({ from: "-15m", until: "now" }), true);
  assert.equal(range.isRelative({ from: "-15m", until: "-5m" }), false);
  assert.equal(range.isRelative({ from: "1780000000", until: "now" }), false);
});

test("ranges are named", () => {
  assert.equal(range.relativeLabel({ from: "-15m", until: "now" }), "Last 15 minutes");
  assert.equal(range.relativeLabel({ from: "-1h", until: "now" }), "Last hour");
  assert.equal(range.relativeLabel({ from: "-7m", until: "now" }), "Last 7 minutes");
  assert.equal(range.relativeLabel({ from: "-1w", until: "now" }), "Last 1 week");
  assert.equal(range.relativeLabel({ from: "-1h", until: "-1m" }), null);
});

test("long ranges are followed less often", () => {
  assert.equal(range.followInterval_s({ from: "-15m", until: "now" }), 10);
  assert.equal(range.followInterval_s({ from: "-1d", until: "now" }), 240);
});

test("a brushed range is whole seconds and never empty", () => {
  assert.deepEqual(range.absoluteRange(23.7, 29.2), { from: "23", until: "30" });
  assert.deepEqual(range.absoluteRange(23, 23), { from: "23", until: "24" });
});

test("a wider range doubles around its middle and ends at now", () => {
  assert.deepEqual(range.widerRange({ from_s: 100, until_s: 120 }, 1000), { from: "90", until: "130" });
  assert.deepEqual(range.widerRange({ from_s: 100, until_s: 120 }, 123), { from: "90", until: "123" });
});
