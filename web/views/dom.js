// SPDX-License-Identifier: Apache-2.0
/** Elements by function. Text is always a text node: a name from a profile can do nothing but be read. */

/**
 * @typedef {Node | string | number | null | undefined | false} Child
 * @typedef {Record<string, string | number | boolean | null | undefined | EventListener>} Attributes
 */

const SVG = "http://www.w3.org/2000/svg";

/**
 * An element with attributes (`on…` are listeners, true is an empty attribute, false and null are left out) and children.
 * @template {keyof HTMLElementTagNameMap} K
 * @param {K} tag
 * @param {Attributes} [attributes]
 * @param {...Child} children
 * @returns {HTMLElementTagNameMap[K]}
 */
export function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  setAttributes(made, attributes);
  appendChildren(made, children);
  return made;
}

/**
 * @param {string} tag
 * @param {Attributes} [attributes]
 * @param {...Child} children
 * @returns {SVGElement}
 */
export function svgElement(tag, attributes = {}, ...children) {
  const made = /** @type {SVGElement} */ (document.createElementNS(SVG, tag));
  setAttributes(made, attributes);
  appendChildren(made, children);
  return made;
}

/**
 * @param {Element} target
 * @param {Attributes} attributes
 */
function setAttributes(target, attributes) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === "function") target.addEventListener(name.slice(2), value);
    else target.setAttribute(name, value === true ? "" : String(value));
  }
}

/**
 * @param {Element} target
 * @param {Child[]} children
 */
function appendChildren(target, children) {
  for (const child of children) {
    if (child === null || child === undefined || child === false) continue;
    target.append(child instanceof Node ? child : String(child));
  }
}

/**
 * @param {Element} target
 * @param {...Child} children
 */
export function fill(target, ...children) {
  target.replaceChildren();
  appendChildren(target, children);
}

/** Paths on a 16 px grid, drawn with the text's colour. @type {Readonly<Record<string, string>>} */
const ICONS = Object.freeze({
  search: "M7 12A5 5 0 1 0 7 2a5 5 0 0 0 0 10Zm3.6-1.4L14 14",
  link: "M6.5 9.5 9.5 6.5M7 4.5l1.3-1.3a3 3 0 0 1 4.4 4.2L11 9M9 11.5l-1.3 1.3a3 3 0 0 1-4.4-4.2L5 7",
  download: "M8 2v8m0 0 3-3m-3 3L5 7M3 13.5h10",
  chevron: "m4.5 6.5 3.5 3.5 3.5-3.5",
  close: "m4 4 8 8m0-8-8 8",
  light: "M8 11a3 3 0 1 0 0-6 3 3 0 0 0 0 6ZM8 1v1.5M8 13.5V15M1 8h1.5M13.5 8H15M3.1 3.1l1 1M11.9 11.9l1 1M3.1 12.9l1-1M11.9 4.1l1-1",
  dark: "M13.5 9.5A6 6 0 0 1 6.5 2.5a6 6 0 1 0 7 7Z",
  system: "M8 2a6 6 0 1 0 0 12A6 6 0 0 0 8 2Zm0 0v12m0-10a4 4 0 0 1 0 8",
  keys: "M2 4.5h12v7H2zM4.5 7h.01M7 7h.01M9.5 7h.01M12 7h.01M5 9.5h6",
  back: "M10 3 5 8l5 5",
  copy: "M5.5 5.5h8v8h-8zM3 10.5h-.5v-8h8V3",
  warning: "M8 2.5 14.5 13.5h-13ZM8 6.5v3M8 11.5h.01",
  filter: "M2 3.5h12M4.5 8h7M6.5 12.5h3",
  swap: "M2.5 5.5h11m0 0-3-3m3 3-3 3M13.5 10.5h-11m0 0 3-3m-3 3 3 3",
  grid: "M2.5 2.5H7V7H2.5zM9 2.5h4.5V7H9zM2.5 9H7v4.5H2.5zM9 9h4.5v4.5H9z",
  bookmark: "M4 2.5h8v11l-4-3-4 3z",
  flip: "M5 3v10m0 0-2.5-2.5M5 13l2.5-2.5M11 13V3m0 0L8.5 5.5M11 3l2.5 2.5",
});

/** @param {string} name of ICONS */
export function icon(name) {
  return svgElement("svg", { class: "icon", viewBox: "0 0 16 16", "aria-hidden": "true" }, svgElement("path", { d: ICONS[name] }));
}

/** Say something in the corner, for four seconds; read out too. @param {string} text */
export function toast(text) {
  const place = /** @type {HTMLElement} */ (document.getElementById("toast"));
  place.textContent = text;
  place.classList.add("is-shown");
  clearTimeout(Number(place.dataset.timer));
  place.dataset.timer = String(setTimeout(() => place.classList.remove("is-shown"), 4000));
}

/**
 * @param {string} text
 * @param {string} said what is told when it worked
 */
export async function copyText(text, said) {
  try {
    await navigator.clipboard.writeText(text);
    toast(said);
  } catch {
    // Without a secure origin there is no clipboard: the text itself is shown instead, to be copied by hand.
    prompt("Copy this:", text);
  }
}
