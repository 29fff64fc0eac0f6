// SPDX-License-Identifier: Apache-2.0
/** Everything about the frame or function that was chosen. Beside the graph; on a narrow screen it slides up from below. */

import { copyText, element, fill, icon } from "./dom.js";
import { frameWordsNodes } from "./tooltip.js";

/**
 * @typedef {import("../core/frame-words.js").FrameWords} FrameWords
 * @typedef {{label: string, run: () => void}} Action
 */

/**
 * @param {{close: () => void}} asked
 * @returns {{root: HTMLElement, show: (words: FrameWords, actions: Action[]) => void, hide: () => void}}
 */
export function makeDetails({ close }) {
  const body = element("div", { class: "details-body" });
  const closeButton = element("button", { class: "button is-icon", type: "button", "aria-label": "Close the details", onclick: close }, icon("close"));
  const head = element("div", { class: "card-head" }, element("h2", {}, "Details"), closeButton);
  const root = element("section", { class: "card details", "aria-label": "Details", hidden: true }, head, body);
  return {
    root,
    hide() {
      root.hidden = true;
    },
    show(words, actions) {
      const copy = { label: "Copy name", run: () => copyText(words.name, "Name copied.") };
      const buttons = [...actions, copy].map(({ label, run }) => element("button", { class: "button is-small", type: "button", onclick: run }, label));
      fill(body, ...frameWordsNodes(words), element("div", { class: "details-actions" }, ...buttons));
      root.hidden = false;
    },
  };
}
