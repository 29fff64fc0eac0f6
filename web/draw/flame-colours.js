// SPDX-License-Identifier: Apache-2.0
/** The fill of every colour index in the theme on screen, in four strengths: plain, dimmed by search, above the zoomed frame, inlined. */

import { COLOUR_COUNT, COLOUR_ROOT, COLOUR_TRIMMED, KIND_MARK, STEPS, cssColour, framePalette, mix } from "../core/colour.js";
import { DIFF_KINDS, diffPalette } from "../core/diff-colour.js";
import { waitPalette } from "../core/wait-colour.js";
import { packedColour } from "./scanline.js";
import { tokenColours } from "./surface.js";

export const STRENGTH_PLAIN = 0;
export const STRENGTH_DIMMED = 1;
export const STRENGTH_ABOVE = 2;
export const STRENGTH_INLINED = 3;
const STRENGTHS = 4;
const BUCKET_COUNT = STRENGTHS * COLOUR_COUNT;

/**
 * @typedef {[number, number, number]} Rgb
 * @typedef {{
 *   fillOf: (bucket: number) => string | CanvasPattern, packed: Uint32Array, isHatched: Uint8Array, ink: string[],
 *   surface: string, accent: string, outline: string, packedSurface: number, packedSunken: number,
 * }} FlameColours `fillOf`, `packed` (as pixels) and `isHatched` by bucket (strength * COLOUR_COUNT + colour), `ink` by strength
 */

const SHARE_OF_SURFACE = [0, 0.8, 0.5, 0];
/** Inlined calls are lighter in both themes, so that names on them stay as easy to read. */
const SHARE_OF_WHITE = [0, 0, 0, 0.4];
/** @type {Rgb} */
const WHITE = [255, 255, 255];
/** How strong lines are, by what they are mixed with. */
const HATCH_SHARE = Object.freeze({ text: 0.16, "diff-hatch": 0.55 });
// Darker than any frame in either theme: see the test of contrast.
const FRAME_INK = "#1c1712";

/**
 * Colours by kind of code.
 * @param {"light" | "dark"} theme
 * @returns {FlameColours}
 */
export function flameColours(theme) {
  return coloursOfPalette(framePalette(theme), (kind) => kind === KIND_MARK);
}

/**
 * Colours of waits: blue who waits, ember who ends it.
 * @param {"light" | "dark"} theme
 * @returns {FlameColours}
 */
export function waitColours(theme) {
  return coloursOfPalette(waitPalette(theme), (kind) => kind === KIND_MARK);
}

/**
 * Colours by change. What is new or gone is hatched in light lines, so that it is seen without colour and its name can be read.
 * @param {"light" | "dark"} theme
 * @returns {FlameColours}
 */
export function diffColours(theme) {
  return coloursOfPalette(diffPalette(theme), (kind) => DIFF_KINDS[kind]?.isHatched ?? false, "diff-hatch");
}

/**
 * @param {Rgb[]} palette of all indices below that of the root
 * @param {(kind: number) => boolean} isHatchedKind
 * @param {"text" | "diff-hatch"} [lineToken] what the lines of hatched kinds are mixed with
 * @returns {FlameColours}
 */
function coloursOfPalette(palette, isHatchedKind, lineToken = "text") {
  const token = tokenColours(["surface-card", "surface-sunken", "surface-root", "text", "text-secondary", "accent", "diff-hatch"]);
  palette[COLOUR_ROOT] = token["surface-root"];
  palette[COLOUR_TRIMMED] = token["surface-sunken"];
  /** @type {Rgb[]} */
  const grounds = [];
  const packed = new Uint32Array(BUCKET_COUNT);
  const isHatched = new Uint8Array(BUCKET_COUNT);
  for (let strength = 0; strength < STRENGTHS; strength += 1) {
    palette.forEach((rgb, colour) => {
      const faded = mix(mix(rgb, token["surface-card"], SHARE_OF_SURFACE[strength]), WHITE, SHARE_OF_WHITE[strength]);
      packed[grounds.length] = packedColour(faded);
      isHatched[grounds.length] = Number(colour === COLOUR_TRIMMED || isHatchedKind(Math.floor(colour / STEPS)));
      grounds.push(faded);
    });
  }
  // Few are ever seen, and each needs a canvas of its own.
  const hatched = new Map();
  const hatchOf = (/** @type {number} */ bucket) => {
    const lines = isHatchedKind(Math.floor((bucket % COLOUR_COUNT) / STEPS)) ? lineToken : "text";
    return hatch(grounds[bucket], mix(grounds[bucket], token[lines], HATCH_SHARE[lines]));
  };
  return {
    fillOf(bucket) {
      if (!isHatched[bucket]) return cssColour(grounds[bucket]);
      if (!hatched.has(bucket)) hatched.set(bucket, hatchOf(bucket));
      return hatched.get(bucket);
    },
    packed,
    isHatched,
    ink: [FRAME_INK, cssColour(token["text-secondary"]), cssColour(token.text), FRAME_INK],
    surface: cssColour(token["surface-card"]),
    packedSurface: packedColour(token["surface-card"]),
    packedSunken: packedColour(token["surface-sunken"]),
    accent: cssColour(token.accent),
    outline: cssColour(token.text),
  };
}

/**
 * Diagonal lines, 6 px apart.
 * @param {Rgb} ground
 * @param {Rgb} line
 * @returns {CanvasPattern | string}
 */
function hatch(ground, line) {
  const size_px = 6;
  const tile = document.createElement("canvas");
  tile.width = size_px;
  tile.height = size_px;
  const context = /** @type {CanvasRenderingContext2D} */ (tile.getContext("2d"));
  context.fillStyle = cssColour(ground);
  context.fillRect(0, 0, size_px, size_px);
  context.strokeStyle = cssColour(line);
  context.beginPath();
  for (const shift of [-size_px, 0, size_px]) {
    context.moveTo(shift, size_px);
    context.lineTo(shift + size_px, 0);
  }
  context.stroke();
  return context.createPattern(tile, "repeat") ?? cssColour(ground);
}
