// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";

import * as colour from "../../../web/core/colour.js";

const FRAME_INK = [0x1c, 0x17, 0x12];

test("names on frames can be read: contrast of at least 4.5 in both themes", () => {
  for (const theme of ["light", "dark"]) {
    for (const rgb of colour.framePalette(theme)) assert.ok(colour.contrast(rgb, FRAME_INK) >= 4.5, `${theme} ${rgb}`);
  }
});

test("contrast is that of WCAG", () => {
  assert.equal(colour.contrast([255, 255, 255], [0, 0, 0]), 21);
  assert.equal(colour.contrast([0x77, 0x77, 0x77], [255, 255, 255]).toFixed(2), "4.48");
});

test("a palette has every kind and step, and steps grow lighter", () => {
  const palette = colour.framePalette("light");
  assert.equal(palette.length, colour.COLOUR_ROOT);
  for (let at = 1; at < palette.length; at += 1) {
    if (at % colour.STEPS) assert.ok(colour.luminance(palette[at]) > colour.luminance(palette[at - 1]));
  }
});

test("hues are those of the page's list", () => {
  assert.deepEqual(colour.rgbFromHsl(0, 1, 0.5), [255, 0, 0]);
  assert.deepEqual(colour.rgbFromHsl(120, 1, 0.25), [0, 128, 0]);
  assert.deepEqual(
    colour.CODE_KINDS.slice(0, 8).map(({ hue }) => hue),
    [40, 50, 18, 190, 140, 90, 265, 215],
  );
});

test("a function keeps its colour, functions of one package are one step apart at most", () => {
  const first = colour.colourIndex("json::parse", "checkout", 1);
  const second = colour.colourIndex("json::find", "checkout", 1);
  assert.equal(first, colour.colourIndex("json::parse", "checkout", 1));
  assert.equal(Math.floor(first / colour.STEPS), 1);
  assert.ok(Math.abs(first - second) <= 1);
});

test("packages are found in the ways languages write them", () => {
  assert.equal(colour.packageOf("json::Value::find", "x"), "json");
  assert.equal(colour.packageOf("<alloc::vec::Vec<T> as Drop>::drop", "x"), "alloc");
  assert.equal(colour.packageOf("net/http.(*conn).serve", "x"), "net/http");
  assert.equal(colour.packageOf("malloc", "libc.so.6"), "libc.so.6");
});

test("a code the page does not know is drawn as unnamed", () => {
  assert.equal(Math.floor(colour.colourIndex("f", "", 23) / colour.STEPS), colour.KIND_UNKNOWN);
});

test("mixing goes from one colour to the other", () => {
  assert.deepEqual(colour.mix([0, 100, 200], [100, 100, 0], 0.25), [25, 100, 150]);
});
