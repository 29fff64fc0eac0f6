// SPDX-License-Identifier: Apache-2.0
/** A button and what opens under it. Escape, a click elsewhere and focus are the browser's own popover. */

import { element } from "./dom.js";

/**
 * @param {HTMLButtonElement} button
 * @param {HTMLElement} panel
 * @param {{onOpen?: () => void}} [actions]
 * @returns {{root: HTMLElement, close: () => void}}
 */
export function makePopover(button, panel, { onOpen } = {}) {
  panel.popover = "auto";
  panel.classList.add("popover");
  button.popoverTargetElement = panel;
  button.setAttribute("aria-expanded", "false");
  const place = () => {
    const { left, bottom, right } = button.getBoundingClientRect();
    const width = panel.offsetWidth;
    const room = document.documentElement.clientWidth - 8;
    const wanted = left + width > room ? right - width : left;
    panel.style.left = `${Math.max(8, Math.min(wanted, room - width))}px`;
    panel.style.top = `${bottom + 6}px`;
    panel.style.maxHeight = `${Math.max(160, window.innerHeight - bottom - 18)}px`;
  };
  // Before it is seen: the "toggle" event comes a task later, when somebody may have begun to type into what onOpen fills.
  panel.addEventListener("beforetoggle", (event) => {
    if (/** @type {ToggleEvent} */ (event).newState === "open") onOpen?.();
  });
  panel.addEventListener("toggle", (event) => {
    const isOpen = /** @type {ToggleEvent} */ (event).newState === "open";
    button.setAttribute("aria-expanded", String(isOpen));
    window[isOpen ? "addEventListener" : "removeEventListener"]("resize", place);
    if (isOpen) place();
  });
  return { root: element("div", { class: "popover-anchor" }, button, panel), close: () => panel.hidePopover() };
}
