// SPDX-License-Identifier: Apache-2.0
/** What the graph is worth, on its face: grey when fine, amber and in words when not. Opens to the whole account. */

import { lossesByReason, qualityItems } from "../core/quality.js";
import { visibleText } from "../core/text.js";
import { formatCount } from "../core/units.js";
import { element, fill, icon } from "./dom.js";

/** @typedef {import("../core/quality.js").Quality} Quality */

/**
 * @param {string} [what] of which there are counts: samples, waits, calls
 * @returns {{root: HTMLElement, show: (quality: Quality) => void}}
 */
export function makeLossStrip(what = "samples") {
  const items = element("ul", { class: "loss-items" });
  const warnings = element("ul", { class: "loss-warnings" });
  const account = element("div", { class: "loss-account" });
  const root = element(
    "details",
    { class: "loss", hidden: true },
    element("summary", { title: "What was expected, stored and lost" }, items, warnings),
    account,
  );
  return {
    root,
    show(quality) {
      root.hidden = false;
      const shown = qualityItems(quality, what);
      fill(items, ...shown.map((item) => lossItem(item)));
      const wrong = shown.filter((item) => !item.isFine);
      fill(warnings, ...wrong.map((item) => element("li", {}, icon("warning"), visibleText(item.words))));
      fill(account, ...accountNodes(quality));
    },
  };
}

/** @param {import("../core/quality.js").QualityItem} item */
function lossItem({ label, value, isFine, words }) {
  return element(
    "li",
    { class: isFine ? "loss-item" : "loss-item is-amber", title: visibleText(words) },
    element("span", { class: "loss-label" }, label),
    " ",
    element("span", { class: "loss-value" }, value),
  );
}

/**
 * The sum every part must add up to, and the losses by reason.
 * @param {Quality} quality
 * @returns {Node[]}
 */
function accountNodes({ expected, stored, idle, filtered, lost, is_of_hosts, stack_lost }) {
  const gone = Object.values(lost).reduce((sum, each) => sum + each, 0);
  const part = (/** @type {string} */ label, /** @type {number} */ count) =>
    element("span", { class: "account-part" }, element("b", {}, formatCount(count)), ` ${label}`);
  const sum = element("p", { class: "account-sum" },
    is_of_hosts ? "On its hosts, all services together: " : "", part("expected", expected), " = ", part("stored", stored), " + ", part("idle", idle), " + ", part("filtered", filtered), " + ", part("lost", gone));
  const list = (/** @type {string} */ title, /** @type {Record<string, number>} */ reasons) => {
    const rows = lossesByReason(reasons);
    if (rows.length === 0) return [];
    return [
      element("h3", {}, title),
      element("ul", { class: "account-reasons" }, ...rows.map(({ words, count }) => element("li", {}, element("b", {}, formatCount(count)), ` ${words}`))),
    ];
  };
  return [sum, ...list(is_of_hosts ? "Lost on its hosts, by cause" : "Lost, by cause", lost), ...list("Kept without a whole stack, by cause", stack_lost)];
}
