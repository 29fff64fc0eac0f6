// SPDX-License-Identifier: Apache-2.0
/** Canvases of the right resolution, and the theme's tokens as colours that a canvas understands. */

/**
 * Size a canvas in CSS pixels and return its context, scaled so that one unit is one CSS pixel.
 * @param {HTMLCanvasElement} canvas
 * @param {number} width_px
 * @param {number} height_px
 * @returns {CanvasRenderingContext2D}
 */
export function fitCanvas(canvas, width_px, height_px) {
  const ratio = window.devicePixelRatio || 1;
  const [width, height] = [Math.max(1, Math.round(width_px * ratio)), Math.max(1, Math.round(height_px * ratio))];
  if (canvas.width !== width || canvas.height !== height) {
    canvas.width = width;
    canvas.height = height;
    canvas.style.width = `${width_px}px`;
    canvas.style.height = `${height_px}px`;
  }
  const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d", { alpha: false }));
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  return context;
}

/**
 * The value of colour tokens in the theme on screen, as red, green, blue.
 * @template {string} T
 * @param {readonly T[]} names without the leading dashes
 * @returns {Record<T, [number, number, number]>}
 */
export function tokenColours(names) {
  // All probes stand before the first is read: each reading after a change would make the browser compute styles anew.
  const probes = document.createElement("div");
  for (const name of names) {
    const probe = document.createElement("span");
    probe.style.color = `var(--${name})`;
    probes.append(probe);
  }
  document.body.append(probes);
  const colours = /** @type {Record<T, [number, number, number]>} */ ({});
  names.forEach((name, at) => {
    const [red, green, blue] = (getComputedStyle(probes.children[at]).color.match(/[\d.]+/g) ?? ["0", "0", "0"]).map(Number);
    colours[name] = [red, green, blue];
  });
  probes.remove();
  return colours;
}

/** True when the reader asked for less motion. */
export function isMotionReduced() {
  return matchMedia("(prefers-reduced-motion: reduce)").matches;
}
