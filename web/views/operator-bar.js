// SPDX-License-Identifier: Apache-2.0
/** The row of frame operators: what is focused on or left out, what a frame stands for, what stands above, and how it is hung up. */

import { FRAME_OPERATORS, GROUPS, UNITS, operatorWords, withFrames } from "../core/operators.js";
import { visibleText } from "../core/text.js";
import { element, fill, icon } from "./dom.js";

/**
 * @typedef {import("../core/route.js").State} State
 * @typedef {import("../core/operators.js").FrameOperator} FrameOperator
 */

/**
 * @param {import("../state/store.js").Store} store
 * @returns {{root: HTMLElement, update: (state: State) => void}}
 */
export function makeOperatorBar(store) {
  const chips = element("div", { class: "operator-chips" });
  const focus = frameInput(store, "focus", "Focus", "Only stacks with such a frame: a part of its name, =name or ~regex");
  const ignore = frameInput(store, "ignore", "Ignore", "Only stacks without such a frame");
  const by = choice("Frames by", UNITS, (unit) => unit, (value) => store.set({ by: UNITS.find((unit) => unit === value) ?? "function", at: "" }));
  const group = choice("Group by", GROUPS, (label) => label || "none", (value) => store.set({ group: value, at: "" }));
  const kernel = toggle("Hide kernel", "Count the kernel's time for who went there", () => store.set({ hideKernel: !store.get().hideKernel, at: "" }));
  const collapse = toggle("Fold recursion", "A function that calls itself as one frame", () => store.set({ collapse: !store.get().collapse, at: "" }));
  const root = element("div", { class: "operators", role: "group", "aria-label": "Frame operators" }, focus.root, ignore.root, by.root, group.root, kernel, collapse, chips);
  return {
    root,
    update(state) {
      focus.update(state.focus);
      ignore.update(state.ignore);
      by.select.value = state.by;
      if (![...group.select.options].some((option) => option.value === state.group)) group.select.append(element("option", { value: state.group }, visibleText(state.group)));
      group.select.value = state.group;
      kernel.setAttribute("aria-pressed", String(state.hideKernel));
      collapse.setAttribute("aria-pressed", String(state.collapse));
      fill(chips, ...FRAME_OPERATORS.filter((operator) => state[operator] !== "").map((operator) => chip(store, operator, state[operator])));
    },
  };
}

/**
 * @param {import("../state/store.js").Store} store
 * @param {FrameOperator} operator
 * @param {string} frames
 */
function chip(store, operator, frames) {
  const words = visibleText(operatorWords(operator, frames));
  return element("button", { class: "button is-small operator-chip", type: "button", "aria-label": `${words}: take it back`, onclick: () => store.set(withFrames(operator, "")) }, element("span", { class: "name" }, words), icon("close"));
}

/**
 * @param {import("../state/store.js").Store} store
 * @param {FrameOperator} operator
 * @param {string} label
 * @param {string} title
 */
function frameInput(store, operator, label, title) {
  const input = element("input", {
    class: "input operator-input",
    type: "text",
    placeholder: "–",
    autocomplete: "off",
    spellcheck: "false",
    title,
    onchange: () => store.set(withFrames(operator, input.value)),
  });
  const update = (/** @type {string} */ frames) => {
    if (document.activeElement !== input || frames === "") input.value = frames;
  };
  return { root: element("label", { class: "operator-label" }, `${label} `, input), update };
}

/**
 * @template {string} T
 * @param {string} label
 * @param {readonly T[]} values
 * @param {(value: T) => string} words
 * @param {(value: string) => void} choose
 */
function choice(label, values, words, choose) {
  const select = element("select", { class: "input", "aria-label": label, onchange: () => choose(select.value) }, ...values.map((value) => element("option", { value }, words(value))));
  return { root: element("label", { class: "operator-label" }, `${label} `, select), select };
}

/**
 * @param {string} label
 * @param {string} title
 * @param {() => void} press
 */
function toggle(label, title, press) {
  return element("button", { class: "button toggle is-small", type: "button", title, "aria-pressed": "false", onclick: press }, label);
}
