// SPDX-License-Identifier: Apache-2.0
/**
 * Boxes of one row as one line of pixels, to be repeated over the row's height.
 *
 * A row of a flame graph is the same on each of its pixel lines, so it is coloured once and copied: 100,000 boxes cost 100,000
 * short runs in an array, where as many fillRect calls cost ten times that.
 */

import { GAPLESS_PX } from "../core/layout.js";

/**
 * A colour as one element of an image's Uint32Array, whatever the byte order of the machine.
 * @param {readonly [number, number, number]} rgb
 */
export function packedColour([red, green, blue]) {
  return new Uint32Array(Uint8Array.of(red, green, blue, 255).buffer)[0];
}

/**
 * Colour a line with the boxes [from, until). Edges are rounded to device pixels, so neighbours meet without a seam; boxes wide
 * enough leave a gap of one CSS pixel at their right.
 * @param {Uint32Array} line device pixels, already of the ground's colour
 * @param {import("../core/layout.js").Boxes} boxes
 * @param {{from: number, until: number, packedOf: (box: number) => number, ratio: number}} run `ratio` is device pixels per CSS pixel
 */
export function fillLine(line, boxes, { from, until, packedOf, ratio }) {
  const { x_px, width_px } = boxes;
  for (let box = from; box < until; box += 1) {
    const left = Math.round(x_px[box] * ratio);
    const gap = width_px[box] >= GAPLESS_PX ? Math.max(1, Math.floor(ratio)) : 0;
    const right = Math.max(left + 1, Math.round((x_px[box] + width_px[box]) * ratio) - gap);
    const packed = packedOf(box);
    if (right - left > 32) line.fill(packed, left, right);
    else for (let at = left; at < right && at < line.length; at += 1) line[at] = packed;
  }
}

/**
 * An image of the right size, kept between paintings.
 * @returns {(context: CanvasRenderingContext2D) => {image: ImageData, pixels: Uint32Array, width: number, height: number}}
 */
export function makeImageKeeper() {
  /** @type {ImageData | null} */
  let image = null;
  return (context) => {
    const { width, height } = context.canvas;
    if (!image || image.width !== width || image.height !== height) image = context.createImageData(width, height);
    return { image, pixels: new Uint32Array(image.data.buffer), width, height };
  };
}
