// SPDX-License-Identifier: Apache-2.0
/**
 * Colours of a diff: less is blue, more is orange, what is noise is grey; how strong by how much of the change is beyond noise.
 *
 * Blue and orange of like luminance stay apart for the common colour blindnesses (tests/web/core/diff-colour.test.mjs simulates
 * them); what is new or has vanished is hatched too, and a sign stands on every frame. Indices are laid out as those of
 * core/colour.js: kind * STEPS + step, so that one painter serves both.
 */

import { COLOUR_ROOT, STEPS, mix, rgbOfLuminance } from "./colour.js";

/** @typedef {{key: string, label: string, isHatched: boolean}} DiffKind */

export const DIFF_NOISE = 0;
export const DIFF_LESS = 1;
export const DIFF_MORE = 2;
export const DIFF_NEW = 3;
export const DIFF_VANISHED = 4;

/** In the order of their index. @type {ReadonlyArray<Readonly<DiffKind>>} */
export const DIFF_KINDS = Object.freeze([
  { key: "noise", label: "within noise", isHatched: false },
  { key: "less", label: "− less in B", isHatched: false },
  { key: "more", label: "+ more in B", isHatched: false },
  { key: "new", label: "+ new in B", isHatched: true },
  { key: "vanished", label: "− gone in B", isHatched: true },
]);

/** Share of all CPU from which on each step is used; step 0 is for what is beyond noise by less. */
const STEP_FROM = Object.freeze([0, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.03, 0.1]);

/** Hue and saturation of #2b6cb0 and #dd6b20, a little stronger: frames are lighter than those. */
const LESS = Object.freeze({ hue: 211, saturation: 0.78 });
const MORE = Object.freeze({ hue: 24, saturation: 0.92 });

/** Relative luminance of noise, and of the weakest and strongest change, by theme. Ink on all of them has a contrast of 4.5. */
const LUMINANCE = Object.freeze({
  light: { noise: 0.76, weak: 0.62, strong: 0.28 },
  dark: { noise: 0.225, weak: 0.26, strong: 0.36 },
});
const NOISE_HUE = 40;
const NOISE_SATURATION = 0.03;

/**
 * The colour index of a change of share.
 * @param {{change: number, low: number, high: number, isNoise: boolean, aTotal: number, bTotal: number}} change low and high are
 *   the ends of its 95 % interval
 */
export function diffColourIndex({ change, low, high, isNoise, aTotal, bTotal }) {
  if (isNoise || change === 0) return DIFF_NOISE * STEPS;
  const beyond = Math.max(0, change > 0 ? low : -high);
  let step = 0;
  while (step + 1 < STEPS && beyond >= STEP_FROM[step + 1]) step += 1;
  if (change > 0) return (aTotal === 0 ? DIFF_NEW : DIFF_MORE) * STEPS + step;
  return (bTotal === 0 ? DIFF_VANISHED : DIFF_LESS) * STEPS + step;
}

/**
 * The colours of all indices below that of the root; those that no kind has are the colour of noise.
 * @param {"light" | "dark"} theme
 * @returns {Array<[number, number, number]>}
 */
export function diffPalette(theme) {
  const { noise, weak, strong } = LUMINANCE[theme];
  const grey = rgbOfLuminance(NOISE_HUE, NOISE_SATURATION, noise);
  const palette = Array.from({ length: COLOUR_ROOT }, () => grey);
  DIFF_KINDS.forEach(({ key }, kind) => {
    if (kind === DIFF_NOISE) return;
    const { hue, saturation } = key === "less" || key === "vanished" ? LESS : MORE;
    for (let step = 0; step < STEPS; step += 1) {
      const share = step / (STEPS - 1);
      const full = rgbOfLuminance(hue, saturation, weak + (strong - weak) * share);
      palette[kind * STEPS + step] = mix(grey, full, 0.55 + 0.45 * share);
    }
  });
  return palette;
}
