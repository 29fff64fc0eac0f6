// SPDX-License-Identifier: Apache-2.0
/** Colours of waits: blue who waits, ember who ends it; a little of the hue and the lightness by package, as in core/colour.js. */

import { COLOUR_ROOT, KIND_MARK, KIND_UNKNOWN, STEPS, rgbOfLuminance } from "./colour.js";
import { isSeparator } from "./kinds.js";

/** @typedef {{key: string, label: string, hue: number, spread: number, saturation: number}} WaitKind */

export const WAIT_PROGRAM = 0;
export const WAIT_KERNEL = 1;
export const WAIT_OTHER = 2;
export const WAIT_OTHER_KERNEL = 3;
const CODE_KERNEL = 7;

/** In the order of their index; marks and unnamed frames keep the index they have by kind of code. @type {ReadonlyArray<Readonly<WaitKind>>} */
export const WAIT_KINDS = Object.freeze([
  { key: "wait", label: "Waiting", hue: 212, spread: 17, saturation: 0.72 },
  { key: "wait-kernel", label: "Waiting in the kernel", hue: 215, spread: 6, saturation: 0.24 },
  { key: "wait-other", label: "Who ended the wait", hue: 22, spread: 8, saturation: 0.74 },
  { key: "wait-other-kernel", label: "The kernel under it", hue: 30, spread: 6, saturation: 0.24 },
  ...Array.from({ length: 4 }, () => ({ key: "wait-none", label: "", hue: 30, spread: 0, saturation: 0.04 })),
  { key: "mark", label: "Marks", hue: 30, spread: 0, saturation: 0.04 },
  { key: "unknown", label: "Unnamed", hue: 225, spread: 0, saturation: 0.1 },
]);

const LUMINANCE = Object.freeze({ light: { low: 0.4, high: 0.64 }, dark: { low: 0.25, high: 0.42 } });

/**
 * The colours of all kinds and steps, in the order of their index.
 * @param {"light" | "dark"} theme
 * @returns {Array<[number, number, number]>}
 */
export function waitPalette(theme) {
  const { low, high } = LUMINANCE[theme];
  return WAIT_KINDS.flatMap(({ hue, spread, saturation }) =>
    Array.from({ length: STEPS }, (_, step) => {
      const share = step / (STEPS - 1);
      return rgbOfLuminance(hue + spread * (1 - share), saturation, low + (high - low) * share);
    }),
  );
}

/**
 * Recolour a tree of waits: what stands below a separator belongs to who ended the wait.
 * @param {import("./tree.js").Tree} tree
 * @returns {import("./tree.js").Tree}
 */
export function colourWaits(tree) {
  const isOther = new Uint8Array(tree.count);
  const isAlready = tree.ancestors.some(({ name }) => isSeparator(name));
  const colour = tree.colour.slice();
  for (let node = 0; node < tree.count; node += 1) {
    const parent = tree.parent[node];
    const at = tree.functionOf[node];
    const above = parent < 0 ? undefined : tree.functions[tree.functionOf[parent]];
    isOther[node] = Number(parent < 0 ? isAlready : isOther[parent] === 1 || (above !== undefined && isSeparator(above.name)));
    if (at >= 0 && colour[node] < COLOUR_ROOT) colour[node] = waitColour(colour[node], isOther[node] === 1);
  }
  const ancestorColour = tree.ancestors.map(({ name }, at) => {
    const isBelow = tree.ancestors.slice(0, at).some((above) => isSeparator(above.name));
    return tree.ancestorColour[at] >= COLOUR_ROOT || isSeparator(name) ? tree.ancestorColour[at] : waitColour(tree.ancestorColour[at], isBelow);
  });
  return { ...tree, colour, ancestorColour };
}

/**
 * @param {number} colour index by kind of code
 * @param {boolean} isOther
 */
function waitColour(colour, isOther) {
  const kind = Math.floor(colour / STEPS);
  const step = colour % STEPS;
  if (kind === KIND_MARK || (kind === KIND_UNKNOWN && !isOther)) return colour;
  if (kind === CODE_KERNEL) return (isOther ? WAIT_OTHER_KERNEL : WAIT_KERNEL) * STEPS + step;
  return (isOther ? WAIT_OTHER : WAIT_PROGRAM) * STEPS + step;
}
