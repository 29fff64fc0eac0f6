// SPDX-License-Identifier: Apache-2.0
/** Small pictures used in tables: spark lines, share bars, badges, commands to copy. */

import { formatShare } from "../core/units.js";
import { copyText, element, icon, svgElement } from "./dom.js";

const SPARK = Object.freeze({ width_px: 120, height_px: 24 });

/**
 * A spark line from zero to the most of its own values; slots without data are gaps.
 * @param {ReadonlyArray<number | null>} values
 * @param {string} label what it shows, for readers who cannot see it
 */
export function sparkLine(values, label) {
  const { width_px, height_px } = SPARK;
  const most = Math.max(0, ...values.map((value) => value ?? 0)) || 1;
  const x = (/** @type {number} */ at) => ((at / Math.max(1, values.length - 1)) * width_px).toFixed(1);
  const y = (/** @type {number} */ value) => (height_px - 2 - (value / most) * (height_px - 4)).toFixed(1);
  let line = "";
  let area = "";
  let isOpen = false;
  values.forEach((value, at) => {
    if (value === null) {
      if (isOpen) area += `L${x(at - 1)} ${height_px}Z`;
      isOpen = false;
      return;
    }
    line += `${isOpen ? "L" : "M"}${x(at)} ${y(value)}`;
    area += `${isOpen ? "" : `M${x(at)} ${height_px}`}L${x(at)} ${y(value)}`;
    isOpen = true;
  });
  if (isOpen) area += `L${x(values.length - 1)} ${height_px}Z`;
  return svgElement(
    "svg",
    { class: "spark", viewBox: `0 0 ${width_px} ${height_px}`, preserveAspectRatio: "none", role: "img", "aria-label": label },
    svgElement("path", { class: "spark-area", d: area }),
    svgElement("path", { class: "spark-line", d: line }),
  );
}

/**
 * @param {number} share 0..1
 * @param {number} [most] the share that fills the bar
 */
export function shareBar(share, most = 1) {
  const bar = element("span", { class: "share-bar", "aria-hidden": "true" });
  const filled = element("span", { class: "share-bar-fill" });
  filled.style.width = `${Math.max(0, Math.min(1, share / (most || 1))) * 100}%`;
  bar.append(filled);
  return element("span", { class: "share" }, bar, element("span", { class: "share-number" }, formatShare(share)));
}

/**
 * @param {string} text
 * @param {"amber" | "grey" | "green" | "red"} tone
 * @param {string} [title]
 */
export function badge(text, tone, title) {
  return element("span", { class: `badge is-${tone}`, title }, text);
}

/**
 * A command with a button that copies it.
 * @param {string} command
 */
export function commandBox(command) {
  const copy = element(
    "button",
    { class: "button is-icon", type: "button", "aria-label": `Copy: ${command}`, title: "Copy", onclick: () => copyText(command, "Copied.") },
    icon("copy"),
  );
  return element("div", { class: "command" }, element("code", {}, command), copy);
}

/**
 * A number with its name, for the heads of views.
 * @param {string} label
 * @param {import("./dom.js").Child[]} value
 */
export function statTile(label, ...value) {
  return element("div", { class: "stat" }, element("dt", {}, label), element("dd", {}, ...value));
}
