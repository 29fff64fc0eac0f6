// SPDX-License-Identifier: Apache-2.0
/** Runs before speedscope's own page: it writes its first texts (names, time axis) in the frame that draws the flame chart. */

const fillText = CanvasRenderingContext2D.prototype.fillText;
CanvasRenderingContext2D.prototype.fillText = function (...given) {
  globalThis.painting ??= requestAnimationFrame(() => requestAnimationFrame(() => {
    globalThis.painted = { count: 1, ms: performance.now() };
    console.info("painted");
  }));
  return fillText.apply(this, given);
};
