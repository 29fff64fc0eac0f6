// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";

import * as quality from "../../../web/core/quality.js";

const FINE = {
  expected: 100,
  stored: 70,
  idle: 23,
  filtered: 7,
  lost: {},
  lost_share: 0,
  stack_lost: {},
  stack_lost_share: 0,
  truncated_share: 0,
  unnamed_share: 0.004,
  unknown_share: 0,
  whole_share: 0.998,
  hosts: 44,
  hosts_silent: [],
};
const itemOf = (given, key) => quality.qualityItems({ ...FINE, ...given }).find((item) => item.key === key);

test("stacks whose outermost frames were not found are not whole", () => {
  const item = itemOf({ unwind_stopped_share: 0.23, whole_share: 0.77 }, "stacks");
  assert.equal(item.isFine, false);
  assert.match(item.words, /^23.0 % of the time lacks its outermost frames/);
  assert.equal(quality.reasonWords("UNWIND_STOPPED"), "the outermost frames were not found");
});

test("a good graph has nothing in amber", () => {
  assert.deepEqual(
    quality.qualityItems(FINE).map(({ label, value, isFine }) => `${label} ${value} ${isFine}`),
    ["lost 0.00 % true", "whole stacks 99.8 % true", "truncated 0.00 % true", "unnamed 0.40 % true", "hosts 44/44 true"],
  );
});

test("names that are being made are said, and only then", () => {
  assert.equal(itemOf({ naming: 0 }, "naming"), undefined);
  assert.deepEqual([1, 3].map((naming) => itemOf({ naming }, "naming").value), ["1 binary…", "3 binaries…"]);
  assert.equal(itemOf({ naming: 3 }, "naming").isFine, true);
});

test("a kernel that hides its addresses is said with what to type, and only then", () => {
  assert.equal(itemOf({ kernel_hidden_share: 0 }, "kernel"), undefined);
  const item = itemOf({ kernel_hidden_share: 0.002 }, "kernel");
  assert.equal(item.isFine, false);
  assert.match(item.words, /^0.20 % of the time stands under \[kernel hidden\].*CAP_SYSLOG.*sysctl kernel.kptr_restrict=1$/);
});

test("a loss is said with its first cause", () => {
  const item = itemOf({ lost: { TIMER_MISSED: 7, MAP_FULL: 23 }, lost_share: 0.03 }, "lost");
  assert.equal(item.isFine, false);
  assert.equal(item.words, "3.0 % of the samples are missing: the map of counts was full");
});

test("what is known by host only is said to be of the hosts", () => {
  const item = itemOf({ lost: { MAP_FULL: 23 }, lost_share: 0.03, is_of_hosts: true }, "lost");
  assert.equal(item.label, "lost on its hosts");
  assert.equal(item.words, "on its hosts, all services together: 3.0 % of the samples are missing: the map of counts was full");
});

test("what is lost goes by its name: of a wait no sample was taken", () => {
  const words = (given) => quality.qualityItems({ ...FINE, ...given }, "waits").map((item) => item.words);
  assert.equal(words({})[0], "0 of 100 expected waits were lost");
  const grave = words({ lost: { MAP_FULL: 3 }, lost_share: 0.03, stack_lost: { MAP_FULL: 2 }, stack_lost_share: 0.02, truncated_share: 0.04 });
  assert.match(grave[0], /^3.0 % of the waits are missing/);
  assert.match(grave[1], /^2.0 % of the waits lost their stack/);
  assert.match(grave[2], /^4.0 % of the waits are deeper than/);
});

test("silent hosts are named", () => {
  const item = itemOf({ hosts: 41, hosts_silent: ["web-3", "web-9", "web-12"] }, "hosts");
  assert.equal(item.value, "41/44");
  assert.equal(item.words, "41 of 44 hosts still report; silent: web-3, web-9, web-12");
  assert.equal(quality.listOf(["a", "b", "c", "d", "e"], 3), "a, b, c and 2 more");
});

test("cut stacks, broken stacks and functions without names are told apart", () => {
  assert.match(itemOf({ truncated_share: 0.02 }, "truncated").words, /deeper than 127 frames/);
  assert.match(itemOf({ unnamed_share: 0.1 }, "unnamed").words, /^10.0 % of the time is in functions without a name/);
  assert.equal(itemOf({ unnamed_share: null }, "unnamed").isFine, true);
  const broken = itemOf({ unknown_share: 0.69, whole_share: 0.31 }, "stacks");
  assert.equal(broken.value, "31.0 %");
  assert.match(broken.words, /^69.0 % of the time has a frame of unknown place/);
  const lost = itemOf({ stack_lost: { UNWIND_STOPPED: 23, STACK_MAP_FULL: 7 }, stack_lost_share: 0.02, whole_share: 0.98 }, "stacks");
  assert.equal(lost.words, "2.0 % of the samples lost their stack: the map of stacks was full");
});

test("a loss of a few samples in a thousand is told, but not in amber", () => {
  assert.equal(itemOf({ lost: { TIMER_MISSED: 2 }, lost_share: 0.002 }, "lost").value, "0.20 %");
  assert.equal(itemOf({ lost: { TIMER_MISSED: 2 }, lost_share: 0.002 }, "lost").isFine, true);
  assert.equal(quality.isLossGrave(0.006), true);
});

test("reasons are in the proto's words, new ones are shown as they are named", () => {
  assert.equal(quality.reasonWords("LOSS_REASON_MAP_FULL"), quality.reasonWords("map_full"));
  assert.equal(quality.reasonWords("SOLAR_FLARE"), "solar flare");
  assert.deepEqual(
    quality.lossesByReason({ MAP_BUSY: 0, EXITED: 7, TRUNCATED: 23 }).map(({ count }) => count),
    [23, 7],
  );
});
