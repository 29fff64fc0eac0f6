// SPDX-License-Identifier: Apache-2.0
/** Says when a picture is on screen: the second frame after drawing begins when the first, with layout and paint, has ended. */

/** @param {number} count of what was drawn */
export function tellPainted(count) {
  requestAnimationFrame(() => requestAnimationFrame(() => {
    globalThis.painted = { count, ms: performance.now() };
    console.info("painted");
  }));
}
