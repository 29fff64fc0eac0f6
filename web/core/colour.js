// SPDX-License-Identifier: Apache-2.0
/**
 * Colours of frames: hue by kind of code, lightness by a hash of the package, so that a function keeps its colour between views.
 *
 * Lightness is chosen as relative luminance (WCAG 2.2), not as HSL lightness: text on any frame then has the same contrast
 * whatever the hue.
 */

/** @typedef {{key: string, label: string, hue: number, saturation: number}} CodeKind */

/** In the order of the API's `code`. @type {ReadonlyArray<Readonly<CodeKind>>} */
export const CODE_KINDS = Object.freeze([
  { key: "native", label: "Native", hue: 40, saturation: 0.8 },
  { key: "cpp", label: "C++", hue: 50, saturation: 0.6 },
  { key: "rust", label: "Rust", hue: 18, saturation: 0.72 },
  { key: "go", label: "Go", hue: 190, saturation: 0.5 },
  { key: "java", label: "Java", hue: 140, saturation: 0.4 },
  { key: "javascript", label: "JavaScript", hue: 90, saturation: 0.46 },
  { key: "python", label: "Python", hue: 265, saturation: 0.62 },
  { key: "kernel", label: "Kernel", hue: 215, saturation: 0.2 },
  { key: "mark", label: "Not taken", hue: 30, saturation: 0.04 },
  { key: "unknown", label: "Unnamed", hue: 30, saturation: 0.06 },
]);

export const STEPS = 8;
export const KIND_MARK = 8;
export const KIND_UNKNOWN = 9;
/** Colour index of the root, and of trimmed frames; those below are kind * STEPS + step. */
export const COLOUR_ROOT = CODE_KINDS.length * STEPS;
export const COLOUR_TRIMMED = COLOUR_ROOT + 1;
export const COLOUR_COUNT = COLOUR_ROOT + 2;

/** Relative luminance of the darkest and the lightest step, by theme. */
const LUMINANCE = Object.freeze({ light: { low: 0.48, high: 0.7 }, dark: { low: 0.27, high: 0.44 } });

/**
 * 32-bit FNV-1a over UTF-16 units.
 * @param {string} text
 */
export function hashText(text) {
  let hash = 0x811c9dc5;
  for (let at = 0; at < text.length; at += 1) {
    hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193);
  }
  // FNV's low bits are weak on short text: fold the high half in.
  return (hash ^ (hash >>> 15)) >>> 0;
}

/**
 * The package a function belongs to: what stands before its last component, or its binary when it has none.
 * @param {string} name
 * @param {string} binary base name
 */
export function packageOf(name, binary) {
  const bare = name.startsWith("<") ? name.replace(/^<+/, "") : name;
  const colons = bare.indexOf("::");
  if (colons >= 0) return bare.slice(0, colons);
  const go = /^([\w./-]*\/)?([\w-]+)\./.exec(bare);
  if (go) return (go[1] ?? "") + go[2];
  return binary;
}

/**
 * Index of a function's colour. Packages differ by two steps and more, functions of one package by one.
 * @param {string} name
 * @param {string} binary
 * @param {number} code index into CODE_KINDS
 */
export function colourIndex(name, binary, code) {
  const kind = code >= 0 && code < CODE_KINDS.length ? code : KIND_UNKNOWN;
  const step = (hashText(packageOf(name, binary)) % (STEPS / 2)) * 2 + (hashText(name) % 2);
  return kind * STEPS + step;
}

/** @param {number} channel 0..1 */
function linear(channel) {
  return channel <= 0.04045 ? channel / 12.92 : ((channel + 0.055) / 1.055) ** 2.4;
}

/**
 * @param {readonly [number, number, number]} rgb 0..255
 * @returns {number} relative luminance, 0..1
 */
export function luminance([red, green, blue]) {
  return 0.2126 * linear(red / 255) + 0.7152 * linear(green / 255) + 0.0722 * linear(blue / 255);
}

/**
 * @param {readonly [number, number, number]} first
 * @param {readonly [number, number, number]} second
 * @returns {number} contrast of WCAG 2.2, 1..21
 */
export function contrast(first, second) {
  const [low, high] = [luminance(first), luminance(second)].sort((a, b) => a - b);
  return (high + 0.05) / (low + 0.05);
}

/**
 * @param {number} hue degrees
 * @param {number} saturation 0..1
 * @param {number} lightness 0..1
 * @returns {[number, number, number]} 0..255
 */
export function rgbFromHsl(hue, saturation, lightness) {
  const reach = saturation * Math.min(lightness, 1 - lightness);
  const channel = (/** @type {number} */ offset) => {
    const turn = (offset + hue / 30) % 12;
    return Math.round(255 * (lightness - reach * Math.max(-1, Math.min(turn - 3, 9 - turn, 1))));
  };
  return [channel(0), channel(8), channel(4)];
}

/**
 * The colour of a hue that has the luminance asked for (to the rounding of channels).
 * @param {number} hue
 * @param {number} saturation
 * @param {number} wanted 0..1
 */
export function rgbOfLuminance(hue, saturation, wanted) {
  let low = 0;
  let high = 1;
  for (let turn = 0; turn < 24; turn += 1) {
    const middle = (low + high) / 2;
    if (luminance(rgbFromHsl(hue, saturation, middle)) < wanted) low = middle;
    else high = middle;
  }
  return rgbFromHsl(hue, saturation, high);
}

/**
 * The colours of all kinds and steps, in the order of their index; root and trimmed are the theme's own and not in it.
 * @param {"light" | "dark"} theme
 * @returns {Array<[number, number, number]>}
 */
export function framePalette(theme) {
  const { low, high } = LUMINANCE[theme];
  return CODE_KINDS.flatMap(({ hue, saturation }) =>
    Array.from({ length: STEPS }, (_, step) => rgbOfLuminance(hue, saturation, low + ((high - low) * step) / (STEPS - 1))),
  );
}

/**
 * @param {readonly [number, number, number]} colour
 * @param {readonly [number, number, number]} into
 * @param {number} share 0 is all `colour`, 1 is all `into`
 * @returns {[number, number, number]}
 */
export function mix(colour, into, share) {
  const blend = (/** @type {0 | 1 | 2} */ at) => Math.round(colour[at] + (into[at] - colour[at]) * share);
  return [blend(0), blend(1), blend(2)];
}

/** @param {readonly [number, number, number]} rgb */
export function cssColour([red, green, blue]) {
  return `rgb(${red} ${green} ${blue})`;
}
