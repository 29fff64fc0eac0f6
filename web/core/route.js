// SPDX-License-Identifier: Apache-2.0
/**
 * The address of a view and the state it stands for, both ways. The address holds everything but the theme.
 *
 * Defaults are left out of the address, so that it stays short; what is unknown in an address is ignored.
 */

import { NO_OPERATORS, operatorParameters, operatorsFromQuery } from "./operators.js";
import { DEFAULT_RANGE, isRelative } from "./range.js";

/**
 * @typedef {"fleet" | "service" | "compare" | "deploys" | "deploy" | "events" | "heat" | "hosts" | "search" | "symbols" | "unknown"} ViewName
 * @typedef {"both" | "graph" | "table"} Shown
 * @typedef {{
 *   view: ViewName, service: string, id: string, from: string, until: string, live: boolean,
 *   hosts: string[], versions: string[], at: string, search: string, mode: "text" | "regex",
 *   sort: string, tab: string, shown: Shown,
 *   waits: string[], idle: "hide" | "show" | "only", column: "" | "uninterruptible_ns", stacks: "" | "first" | "second" | "both", object: string, buckets: string,
 *   a: string, aFrom: string, aUntil: string, aRate: string, b: string, bFrom: string, bUntil: string, bRate: string, shape: import("./compare.js").Shape,
 *   boxes: string[],
 * } & import("./operators.js").Operators} State the sides of a comparison are selectors with ranges of their own; from and until are kept for the other views; `id` is that
 *   of a deploy, `boxes` are what is selected on a heat map (see core/heat.js)
 */

const IDLE = /** @type {const} */ (["hide", "show", "only"]);
const STACKS = /** @type {const} */ (["", "first", "second", "both"]);
/** What a graph may be of, beside the time of its kind. */
const COLUMNS = /** @type {const} */ (["", "uninterruptible_ns"]);
/** One leads to a graph, two to a comparison. */
export const MOST_BOXES = 2;
const NODE_ID = /^\d{1,16}$/;

/** @type {Readonly<State>} */
export const DEFAULT_STATE = Object.freeze({
  view: "fleet",
  service: "",
  id: "",
  from: DEFAULT_RANGE.from,
  until: DEFAULT_RANGE.until,
  live: true,
  hosts: [],
  versions: [],
  at: "",
  search: "",
  mode: "text",
  sort: "",
  tab: "cpu",
  shown: "both",
  ...NO_OPERATORS,
  waits: [],
  idle: "hide",
  column: "",
  stacks: "",
  object: "",
  buckets: "",
  a: "",
  aFrom: "",
  aUntil: "",
  aRate: "",
  b: "",
  bFrom: "",
  bUntil: "",
  bRate: "",
  shape: "b",
  boxes: [],
});

/** Deploys and events are rarer than samples: their lists begin with a week. */
const RARE_FROM = "-7d";
/** @type {readonly ViewName[]} */
const RARE_VIEWS = ["deploys", "deploy", "events"];
/** @type {readonly ViewName[]} */
const PLAIN_VIEWS = ["compare", "deploys", "events", "hosts", "search", "symbols"];
/** Names in the address of the fields that only a comparison has. */
const SIDE_NAMES = /** @type {const} */ ({
  a: "a", aFrom: "a_from", aUntil: "a_until", aRate: "a_rate", b: "b", bFrom: "b_from", bUntil: "b_until", bRate: "b_rate",
});

/** Views of one thing, named in the path. @type {ReadonlyArray<{view: ViewName, path: RegExp, field: "service" | "id"}>} */
const NAMED_VIEWS = [
  { view: "service", path: /^\/service\/(.+)$/, field: "service" },
  { view: "heat", path: /^\/heat\/(.+)$/, field: "service" },
  { view: "deploy", path: /^\/deploys\/([0-9a-f]{1,64})$/, field: "id" },
];

/**
 * @param {string} path
 * @returns {{view: ViewName, service: string, id: string}}
 */
function viewFromPath(path) {
  const none = { service: "", id: "" };
  if (path === "/" || path === "/index.html") return { view: "fleet", ...none };
  const plain = PLAIN_VIEWS.find((view) => path === `/${view}`);
  if (plain) return { view: plain, ...none };
  for (const { view, path: shape, field } of NAMED_VIEWS) {
    const found = shape.exec(path);
    const name = found ? decoded(found[1]) : null;
    if (name !== null) return { view, ...none, [field]: name };
  }
  return { view: "unknown", ...none };
}

/** @param {string} text @returns {string | null} */
function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return null;
  }
}

/**
 * @param {string} path such as `/service/checkout`
 * @param {string} query such as `?from=-1h`
 * @returns {State}
 */
export function stateFromAddress(path, query) {
  const given = new URLSearchParams(query);
  const text = (/** @type {string} */ name, /** @type {string} */ fallback) => given.get(name) ?? fallback;
  const at = text("at", "");
  const shown = text("shown", "both");
  const shape = text("shape", "b");
  const viewed = viewFromPath(path);
  const range = { from: text("from", usualFrom(viewed.view)), until: text("until", DEFAULT_STATE.until) };
  return {
    ...DEFAULT_STATE,
    ...viewed,
    ...range,
    live: isRelative(range) && text("live", "1") !== "0",
    hosts: given.getAll("host"),
    versions: given.getAll("version"),
    at: NODE_ID.test(at) ? at : "",
    search: text("search", ""),
    mode: text("mode", "text") === "regex" ? "regex" : "text",
    sort: text("sort", ""),
    tab: text("tab", DEFAULT_STATE.tab),
    shown: shown === "graph" || shown === "table" ? shown : "both",
    ...operatorsFromQuery(text),
    waits: given.getAll("class"),
    idle: oneOf(text("idle", "hide"), IDLE, "hide"),
    column: oneOf(text("column", ""), COLUMNS, ""),
    stacks: oneOf(text("stacks", ""), STACKS, ""),
    object: text("object", ""),
    buckets: text("buckets", ""),
    ...sidesFromQuery(viewed.view, text),
    boxes: viewed.view === "heat" ? given.getAll("box").slice(0, MOST_BOXES) : [],
    shape: viewed.view === "compare" && (shape === "a" || shape === "union") ? shape : "b",
  };
}

/**
 * @template {string} T
 * @param {string} text
 * @param {readonly T[]} words
 * @param {T} usual
 * @returns {T}
 */
function oneOf(text, words, usual) {
  return words.find((word) => word === text) ?? usual;
}

/** @param {ViewName} view */
function usualFrom(view) {
  return RARE_VIEWS.includes(view) ? RARE_FROM : DEFAULT_STATE.from;
}

/**
 * @param {ViewName} view
 * @param {(name: string, fallback: string) => string} text
 */
function sidesFromQuery(view, text) {
  const sides = { a: "", aFrom: "", aUntil: "", aRate: "", b: "", bFrom: "", bUntil: "", bRate: "" };
  if (view !== "compare") return sides;
  for (const key of /** @type {Array<keyof typeof SIDE_NAMES>} */ (Object.keys(SIDE_NAMES))) sides[key] = text(SIDE_NAMES[key], "");
  return sides;
}

/**
 * @param {State} state
 * @returns {string} path and query
 */
export function addressFromState(state) {
  const query = new URLSearchParams();
  const put = (/** @type {string} */ name, /** @type {string} */ value, /** @type {string} */ usual) => {
    if (value !== usual) query.set(name, value);
  };
  if (state.view === "compare") {
    for (const key of /** @type {Array<keyof typeof SIDE_NAMES>} */ (Object.keys(SIDE_NAMES))) put(SIDE_NAMES[key], state[key], "");
    put("shape", state.shape, "b");
  }
  put("from", state.from, usualFrom(state.view));
  put("until", state.until, DEFAULT_STATE.until);
  if (isRelative(state)) put("live", state.live ? "1" : "0", "1");
  if (state.view === "heat") for (const box of state.boxes) query.append("box", box);
  for (const host of state.hosts) query.append("host", host);
  for (const version of state.versions) query.append("version", version);
  put("at", state.at, "");
  put("search", state.search, "");
  put("mode", state.mode, "text");
  put("sort", state.sort, "");
  put("tab", state.tab, DEFAULT_STATE.tab);
  put("shown", state.shown, "both");
  for (const [name, value] of Object.entries(operatorParameters(state))) put(name, value, "");
  for (const wait of state.waits) query.append("class", wait);
  put("idle", state.idle, "hide");
  put("column", state.column, "");
  put("stacks", state.stacks, "");
  put("object", state.object, "");
  put("buckets", state.buckets, "");
  const text = query.toString();
  return pathFromState(state) + (text ? `?${text}` : "");
}

/** @param {State} state */
function pathFromState(state) {
  if (state.view === "service" || state.view === "heat") return `/${state.view}/${encodeURIComponent(state.service)}`;
  if (state.view === "deploy") return `/deploys/${state.id}`;
  return state.view === "fleet" || state.view === "unknown" ? "/" : `/${state.view}`;
}

/**
 * The state of another view in the same range: what belongs to the old view alone falls away.
 * @param {State} state
 * @param {ViewName} view
 * @param {string} [service]
 * @returns {State}
 */
export function stateOfView(state, view, service = "") {
  const isOtherPace = RARE_VIEWS.includes(view) !== RARE_VIEWS.includes(state.view);
  const range = isOtherPace ? { from: usualFrom(view), until: "now", live: true } : { from: state.from, until: state.until, live: state.live };
  return { ...DEFAULT_STATE, view, service, ...range };
}

/**
 * A comparison, in the range of the view it is opened from.
 * @param {State} state
 * @param {import("./compare.js").CompareState} comparison
 * @returns {State}
 */
export function stateOfComparison(state, comparison) {
  return { ...stateOfView(state, "compare"), idle: state.idle, ...comparison };
}
