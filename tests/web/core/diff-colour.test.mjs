// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";

import { COLOUR_ROOT, STEPS, contrast } from "../../../web/core/colour.js";
import { DIFF_KINDS, DIFF_LESS, DIFF_MORE, DIFF_NEW, DIFF_NOISE, DIFF_VANISHED, diffColourIndex, diffPalette } from "../../../web/core/diff-colour.js";

const FRAME_INK = [0x1c, 0x17, 0x12];
const THEMES = ["light", "dark"];

// Dichromats of Machado, Oliveira, Fernandes 2009, severity 1.0; for linear RGB.
const BLINDNESS = {
  none: [[1, 0, 0], [0, 1, 0], [0, 0, 1]],
  protanopia: [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
  deuteranopia: [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.01182, 0.04294, 0.968881]],
  tritanopia: [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.3039]],
};
const linear = (channel) => (channel <= 10.31475 ? channel / 3294.6 : ((channel / 255 + 0.055) / 1.055) ** 2.4);
const times = (matrix, vector) => matrix.map((row) => row.reduce((sum, each, at) => sum + each * vector[at], 0));

/** CIE L*a*b* (D65) of an sRGB colour as somebody with that blindness sees it. */
function lab(rgb, blindness) {
  const seen = times(BLINDNESS[blindness], rgb.map(linear)).map((each) => Math.min(1, Math.max(0, each)));
  const xyz = times([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]], seen);
  const [x, y, z] = xyz.map((each, at) => each / [0.95047, 1, 1.08883][at]).map((each) => (each > 0.008856 ? Math.cbrt(each) : 7.787 * each + 16 / 116));
  return [116 * y - 16, 500 * (x - y), 200 * (y - z)];
}
const distance = (first, second, blindness) => Math.hypot(...lab(first, blindness).map((each, at) => each - lab(second, blindness)[at]));

test("the simulation leaves grey alone and takes red and green near each other", () => {
  const [red, green] = [[200, 60, 40], [90, 130, 40]];
  assert.ok(distance([128, 128, 128], [128, 128, 128], "deuteranopia") === 0);
  assert.ok(distance(red, green, "deuteranopia") < distance(red, green, "none") / 2);
});

test("less, more and noise stay apart for every common colour blindness", () => {
  for (const theme of THEMES) {
    const palette = diffPalette(theme);
    const noise = palette[DIFF_NOISE];
    for (const blindness of Object.keys(BLINDNESS)) {
      for (let step = 0; step < STEPS; step += 1) {
        const [less, more] = [palette[DIFF_LESS * STEPS + step], palette[DIFF_MORE * STEPS + step]];
        const where = `${theme} ${blindness} step ${step}`;
        // A difference of 2.3 is just seen; ten is seen at a glance.
        assert.ok(distance(less, more, blindness) >= 20, `${where}: less and more are ${distance(less, more, blindness).toFixed(1)} apart`);
        assert.ok(distance(less, noise, blindness) >= 10, `${where}: less is ${distance(less, noise, blindness).toFixed(1)} from noise`);
        assert.ok(distance(more, noise, blindness) >= 10, `${where}: more is ${distance(more, noise, blindness).toFixed(1)} from noise`);
      }
    }
  }
});

test("a larger change is farther from noise", () => {
  for (const theme of THEMES) {
    const palette = diffPalette(theme);
    for (const kind of [DIFF_LESS, DIFF_MORE]) {
      for (let step = 1; step < STEPS; step += 1) {
        const [weaker, stronger] = [palette[kind * STEPS + step - 1], palette[kind * STEPS + step]];
        assert.ok(distance(stronger, palette[0], "none") > distance(weaker, palette[0], "none"), `${theme} kind ${kind} step ${step}`);
      }
    }
  }
});

test("names on frames can be read in both themes", () => {
  for (const theme of THEMES) {
    for (const rgb of diffPalette(theme)) assert.ok(contrast(rgb, FRAME_INK) >= 4.5, `${theme} ${rgb} ${contrast(rgb, FRAME_INK)}`);
  }
});

test("the palette is laid out as that of kinds of code", () => {
  assert.equal(diffPalette("light").length, COLOUR_ROOT);
  assert.deepEqual(DIFF_KINDS.map(({ isHatched }) => isHatched), [false, false, false, true, true]);
});

const change = (more) => ({ change: 0, low: 0, high: 0, isNoise: false, aTotal: 7, bTotal: 7, ...more });

test("the colour is by direction, and by how much is beyond noise", () => {
  assert.equal(diffColourIndex(change({ change: 0.02, low: 0.012, high: 0.028 })), DIFF_MORE * STEPS + 5);
  assert.equal(diffColourIndex(change({ change: -0.02, low: -0.028, high: -0.012 })), DIFF_LESS * STEPS + 5);
  // The same change, less sure.
  assert.equal(diffColourIndex(change({ change: 0.02, low: 0.0001, high: 0.0399 })), DIFF_MORE * STEPS);
  assert.equal(diffColourIndex(change({ change: 0.9, low: 0.8, high: 1 })), DIFF_MORE * STEPS + STEPS - 1);
});

test("noise and no change are grey, new and vanished have kinds of their own", () => {
  assert.equal(diffColourIndex(change({ change: 0.5, low: 0.4, high: 0.6, isNoise: true })), DIFF_NOISE);
  assert.equal(diffColourIndex(change({})), DIFF_NOISE);
  assert.equal(Math.floor(diffColourIndex(change({ change: 0.1, low: 0.05, high: 0.15, aTotal: 0 })) / STEPS), DIFF_NEW);
  assert.equal(Math.floor(diffColourIndex(change({ change: -0.1, low: -0.15, high: -0.05, bTotal: 0 })) / STEPS), DIFF_VANISHED);
});

test("swapping the sides mirrors the colour", () => {
  const one = change({ change: 0.02, low: 0.005, high: 0.035 });
  const other = change({ change: -0.02, low: -0.035, high: -0.005 });
  assert.equal(diffColourIndex(one) % STEPS, diffColourIndex(other) % STEPS);
});
