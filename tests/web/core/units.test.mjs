// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";

process.env.TZ = "UTC";
const units = await import("../../../web/core/units.js");

test("times of CPU are said in the unit people would use", () => {
  const said = [
    [0, "0 s"],
    [7, "7 ns"],
    [23_000, "23 µs"],
    [4_200_000, "4.2 ms"],
    [61e9, "61 s"],
    [599e9, "599 s"],
    [600e9, "10 min"],
    [3 * 3600e9, "3 h"],
  ];
  for (const [value_ns, words] of said) assert.equal(units.formatDuration(value_ns), words);
});

test("cores", () => {
  assert.equal(units.formatCores(0.871), "0.87 cores");
  assert.equal(units.formatCores(1), "1 core");
  assert.equal(units.formatCores(0.001), "< 0.01 cores");
  assert.equal(units.formatCores(0), "0 cores");
});

test("values of an axis are told apart, however small it is", () => {
  const said = [
    [0, "0"],
    [0.0005, "0.0005"],
    [0.002, "0.002"],
    [0.5, "0.50"],
    [2, "2"],
  ];
  for (const [tick, words] of said) assert.equal(units.formatTick(tick), words);
});

test("a share that is not nothing never reads 0, one that is not all never reads 100", () => {
  assert.equal(units.formatShare(0), "0 %");
  assert.equal(units.formatShare(0.0004), "< 0.1 %");
  assert.equal(units.formatShare(0.123), "12.3 %");
  assert.equal(units.formatShare(0.9999), "> 99.9 %");
  assert.equal(units.formatShare(1), "100 %");
  assert.equal(units.formatShare(Number.NaN), "–");
});

test("losses keep the hundredth", () => {
  assert.equal(units.formatLoss(0), "0.00 %");
  assert.equal(units.formatLoss(0.00001), "< 0.01 %");
  assert.equal(units.formatLoss(0.0003), "0.03 %");
  assert.equal(units.formatLoss(0.014), "1.4 %");
});

test("sizes and ages", () => {
  assert.equal(units.formatBytes(23), "23 B");
  assert.equal(units.formatBytes(41 * 1024 * 1024), "41 MiB");
  assert.equal(units.formatBytes(1536), "1.5 KiB");
  assert.equal(units.formatAge(0.4), "now");
  assert.equal(units.formatAge(41), "41 s");
  assert.equal(units.formatAge(3600), "1 h");
  assert.equal(units.formatAge(7 * 86400), "7 d");
});

test("a range says its day once", () => {
  // 2026-05-28 20:26:40 UTC
  const from_s = 1_780_000_000;
  assert.equal(units.formatRange(from_s, from_s + 3600), "2026-05-28 20:26 – 21:26");
  assert.equal(units.formatRange(from_s, from_s + 60), "2026-05-28 20:26:40 – 20:27:40");
  assert.equal(units.formatRange(from_s, from_s + 86400), "2026-05-28 20:26 – 2026-05-29 20:26");
});

test("the zone of local times is named as it is at that time", () => {
  const summer_s = Date.UTC(2026, 6, 1) / 1000;
  const zones = { UTC: "UTC", "Europe/Berlin": "UTC+2", "Asia/Kolkata": "UTC+5:30", "America/St_Johns": "UTC−2:30" };
  for (const [zone, words] of Object.entries(zones)) {
    process.env.TZ = zone;
    assert.equal(units.formatZone(summer_s), words);
  }
  process.env.TZ = "Europe/Berlin";
  assert.equal(units.formatZone(Date.UTC(2026, 0, 1) / 1000), "UTC+1");
  process.env.TZ = "UTC";
});
