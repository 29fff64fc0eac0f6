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
 * A picture of rows in which each is one line of pixels, kept between paintings. The browser stretches the lines when it draws:
 * a picture of the canvas's own size would be 18 times the memory to touch.
 */
export function makeRowPicture() {
  const canvas = document.createElement("canvas");
  const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d", { alpha: false, willReadFrequently: true }));
  /** @type {ImageData | null} */
  let image = null;
  return {
    context,
    /**
     * The pixels of `count` rows, to be filled.
     * @param {number} width device pixels
     * @param {number} count
     */
    lines(width, count) {
      if (!image || image.width !== width || image.height !== count) {
        image = context.createImageData(width, count);
        canvas.width = width;
        canvas.height = count;
      }
      return new Uint32Array(image.data.buffer);
    },
    /**
     * Draw the rows, each stretched over its place.
     * @param {CanvasRenderingContext2D} onto
     * @param {(row: number) => {top: number, bottom: number}} placeOf in device pixels
     */
    draw(onto, placeOf) {
      if (!image) return;
      const { width, height } = image;
      context.putImageData(image, 0, 0);
      onto.save();
      onto.resetTransform();
      onto.imageSmoothingEnabled = false;
      for (let row = 0; row < height; row += 1) {
        const { top, bottom } = placeOf(row);
        onto.drawImage(canvas, 0, row, width, 1, 0, top, width, bottom - top);
      }
      onto.restore();
    },
  };
}
