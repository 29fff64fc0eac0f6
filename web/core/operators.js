// SPDX-License-Identifier: Apache-2.0
/** What is done to the frames of a graph: fields of the state, parameters of the API, and the words for them. */

import { shellWord } from "./selector.js";

/**
 * @typedef {"focus" | "ignore" | "callers" | "callees"} FrameOperator
 * @typedef {"function" | "line" | "generics" | "package" | "binary"} Unit
 * @typedef {{focus: string, ignore: string, callers: string, callees: string, by: Unit, group: string, hideKernel: boolean,
 *   collapse: boolean, invert: boolean}} Operators
 */

/** @type {readonly FrameOperator[]} */
export const FRAME_OPERATORS = ["focus", "ignore", "callers", "callees"];
/** @type {readonly Unit[]} */
export const UNITS = ["function", "line", "generics", "package", "binary"];
/** Labels that every series has, and the thread of each row. */
export const GROUPS = ["", "thread", "service", "version", "host"];

/** @type {Readonly<Operators>} */
export const NO_OPERATORS = Object.freeze({
  focus: "",
  ignore: "",
  callers: "",
  callees: "",
  by: "function",
  group: "",
  hideKernel: false,
  collapse: false,
  invert: false,
});
export const OPERATOR_KEYS = /** @type {const} */ (["focus", "ignore", "callers", "callees", "by", "group", "hideKernel", "collapse", "invert"]);

/**
 * As the address and the API name them; what is not used is empty.
 * @param {Operators} state
 * @returns {Record<string, string>}
 */
export function operatorParameters(state) {
  return {
    focus: state.focus,
    ignore: state.ignore,
    callers: state.callers,
    callees: state.callees,
    by: state.by === "function" ? "" : state.by,
    group: state.group,
    hide_kernel: state.hideKernel ? "1" : "",
    collapse: state.collapse ? "1" : "",
    invert: state.invert ? "1" : "",
  };
}

/**
 * As options of `emberwatch query`, each with a space before it.
 * @param {Operators} state
 */
export function operatorOptions(state) {
  const flags = ["hide_kernel", "collapse", "invert"];
  return Object.entries(operatorParameters(state))
    .filter(([, value]) => value !== "")
    .map(([name, value]) => (flags.includes(name) ? ` --${name.replace("_", "-")}` : ` --${name} ${shellWord(value)}`))
    .join("");
}

/**
 * @param {(name: string, fallback: string) => string} text
 * @returns {Operators}
 */
export function operatorsFromQuery(text) {
  const group = text("group", "");
  const flag = (/** @type {string} */ name) => text(name, "") === "1";
  return {
    focus: text("focus", ""),
    ignore: text("ignore", ""),
    callers: text("callers", ""),
    callees: text("callees", ""),
    by: UNITS.find((unit) => unit === text("by", "")) ?? "function",
    group: group === "none" ? "" : group,
    hideKernel: flag("hide_kernel"),
    collapse: flag("collapse"),
    invert: flag("invert"),
  };
}

/**
 * The state after one frame operator was set: callers and callees exclude one another, and what was zoomed into may be gone.
 * @param {FrameOperator} operator
 * @param {string} frames
 */
export function withFrames(operator, frames) {
  const other = operator === "callers" ? { callees: "" } : operator === "callees" ? { callers: "" } : {};
  return { ...other, [operator]: frames, at: "" };
}

/** Exactly the function of this name. @param {string} name */
export function exactly(name) {
  return `=${name}`;
}

/**
 * How a frame operator is said.
 * @param {FrameOperator} operator
 * @param {string} frames
 */
export function operatorWords(operator, frames) {
  const name = frames.startsWith("=") ? frames.slice(1) : frames.startsWith("~") ? `/${frames.slice(1)}/` : `…${frames}…`;
  const said = { focus: "only with", ignore: "without", callers: "callers of", callees: "called by" };
  return `${said[operator]} ${name}`;
}
