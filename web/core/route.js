// SPDX-License-Identifier: Apache-2.0
/**
 * The address of a view and the state it stands for, both ways. The address holds everything but the theme.
 *
 * Defaults are left out of the address, so that it stays short; what is unknown in an address is ignored.
 */

import { DEFAULT_RANGE, isRelative } from "./range.js";

/**
 * @typedef {"fleet" | "service" | "hosts" | "symbols" | "unknown"} ViewName
 * @typedef {"both" | "graph" | "table"} Shown
 * @typedef {{
 *   view: ViewName, service: string, from: string, until: string, live: boolean,
 *   hosts: string[], versions: string[], at: string, search: string, mode: "text" | "regex",
 *   sort: string, tab: string, shown: Shown, invert: boolean, threads: boolean,
 * }} State
 */

const NODE_ID = /^\d{1,16}$/;

/** @type {Readonly<State>} */
export const DEFAULT_STATE = Object.freeze({
  view: "fleet",
  service: "",
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
  invert: false,
  threads: false,
});

/**
 * @param {string} path
 * @returns {{view: ViewName, service: string}}
 */
function viewFromPath(path) {
  if (path === "/" || path === "/index.html") return { view: "fleet", service: "" };
  if (path === "/hosts" || path === "/symbols") return { view: path === "/hosts" ? "hosts" : "symbols", service: "" };
  const service = /^\/service\/(.+)$/.exec(path);
  if (!service) return { view: "unknown", service: "" };
  try {
    return { view: "service", service: decodeURIComponent(service[1]) };
  } catch {
    return { view: "unknown", service: "" };
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
  const range = { from: text("from", DEFAULT_STATE.from), until: text("until", DEFAULT_STATE.until) };
  return {
    ...DEFAULT_STATE,
    ...viewFromPath(path),
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
    invert: text("invert", "0") === "1",
    threads: text("group", "none") === "thread",
  };
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
  put("from", state.from, DEFAULT_STATE.from);
  put("until", state.until, DEFAULT_STATE.until);
  if (isRelative(state)) put("live", state.live ? "1" : "0", "1");
  for (const host of state.hosts) query.append("host", host);
  for (const version of state.versions) query.append("version", version);
  put("at", state.at, "");
  put("search", state.search, "");
  put("mode", state.mode, "text");
  put("sort", state.sort, "");
  put("tab", state.tab, DEFAULT_STATE.tab);
  put("shown", state.shown, "both");
  put("invert", state.invert ? "1" : "0", "0");
  put("group", state.threads ? "thread" : "none", "none");
  const text = query.toString();
  return pathFromState(state) + (text ? `?${text}` : "");
}

/** @param {State} state */
function pathFromState(state) {
  if (state.view === "service") return `/service/${encodeURIComponent(state.service)}`;
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
  return { ...DEFAULT_STATE, view, service, from: state.from, until: state.until, live: state.live };
}
