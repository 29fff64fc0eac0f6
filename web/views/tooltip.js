// SPDX-License-Identifier: Apache-2.0
/** The tooltip of the flame graph: everything about a frame, beside the pointer, never over the frame itself. */

import { CODE_KINDS } from "../core/colour.js";
import { buildLines } from "../core/frame-words.js";
import { element, fill } from "./dom.js";

/** @typedef {import("../core/frame-words.js").FrameWords} FrameWords */

const GAP_PX = 6;

/**
 * @param {HTMLElement} place
 * @returns {{show: (words: FrameWords, near: {x_px: number, top_px: number, bottom_px: number}) => void, hide: () => void, isShown: () => boolean}}
 *   `near` is in the window's pixels: the pointer's x, and the frame's upper and lower edge
 */
export function makeTooltip(place) {
  const root = element("div", { class: "tooltip", role: "presentation", hidden: true });
  place.append(root);
  return {
    isShown: () => !root.hidden,
    hide() {
      root.hidden = true;
    },
    show(words, { x_px, top_px, bottom_px }) {
      fill(root, ...frameWordsNodes(words));
      root.hidden = false;
      const { offsetWidth: width, offsetHeight: height } = root;
      const left = Math.max(8, Math.min(x_px + 12, document.documentElement.clientWidth - width - 8));
      const isRoomBelow = bottom_px + GAP_PX + height < window.innerHeight - 4;
      root.style.left = `${left}px`;
      root.style.top = `${isRoomBelow ? bottom_px + GAP_PX : Math.max(4, top_px - GAP_PX - height)}px`;
    },
  };
}

/**
 * @param {FrameWords} words
 * @returns {Node[]}
 */
export function frameWordsNodes({ name, binary, file, line, code, builds = [], lines }) {
  const kind = CODE_KINDS[code];
  const from = [file && (line > 0 ? `${file}:${line}` : file), binary].filter(Boolean);
  return [
    element("p", { class: "frame-name name" }, name),
    ...from.map((each) => element("p", { class: "frame-from name" }, each)),
    element(
      "dl",
      { class: "frame-numbers" },
      ...[...lines, ...buildLines(builds)].flatMap(([label, value]) => [element("dt", {}, label), element("dd", {}, value)]),
      ...(kind ? [element("dt", {}, "code"), element("dd", {}, element("span", { class: `swatch is-${kind.key}` }), ` ${kind.label}`)] : []),
    ),
  ];
}
