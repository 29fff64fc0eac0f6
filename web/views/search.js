// SPDX-License-Identifier: Apache-2.0
/** Find a function in the fleet: which services spend time in it, how much, since when; each line opens the graph focused there. */

import { exactly } from "../core/operators.js";
import { addressFromState, stateOfView } from "../core/route.js";
import { countOf, visibleText } from "../core/text.js";
import { formatCount, formatDuration, formatShare } from "../core/units.js";
import { getJson } from "../net/api.js";
import { makeDataTable } from "./data-table.js";
import { element, fill } from "./dom.js";
import { makeLoader } from "./loader.js";
import { shareBar, sparkLine } from "./parts.js";

/**
 * @typedef {import("./fleet.js").Context} Context
 * @typedef {import("./fleet.js").View} View
 * @typedef {import("../core/route.js").State} State
 * @typedef {{name: string, binary: string, code: number, self: number, total: number, services: number}} FoundFunction
 * @typedef {{service: string, self: number, total: number, share: number, fleet_share: number, hosts: number,
 *   trend: Array<number | null>, functions: FoundFunction[], functions_total: number}} FoundService
 * @typedef {{search: string, total: number, share: number, services: FoundService[], services_total: number, functions_total: number}} SearchAnswer
 */

/**
 * @param {HTMLElement} place
 * @param {Context} context
 * @returns {View}
 */
export function mountSearch(place, { store }) {
  const input = element("input", {
    class: "input search-fleet",
    type: "search",
    placeholder: "Find a function in the fleet",
    "aria-label": "Find a function in the fleet",
    autocomplete: "off",
    spellcheck: "false",
    "data-search": true,
    onchange: () => store.set({ search: input.value }),
  });
  const regex = element("button", { class: "button toggle", type: "button", title: "Search by regular expression", onclick: () => store.set({ mode: store.get().mode === "regex" ? "text" : "regex" }) }, ".*");
  const summary = element("p", { class: "is-quiet", role: "status" });
  const table = makeDataTable({ caption: "Services that spend time there", columns: columnsFor(() => store.get()), onSort: (sort) => store.set({ sort }), className: "is-cards" });
  const list = element("div", { class: "card" }, table.root);
  const panel = element("section", { class: "panel", "aria-label": "Found" }, list);
  const loader = makeLoader(panel, { retry: () => load(false) });
  /** @type {SearchAnswer | null} */
  let answer = null;
  const show = () => {
    const state = store.get();
    if (document.activeElement !== input) input.value = state.search;
    regex.setAttribute("aria-pressed", String(state.mode === "regex"));
    list.hidden = !answer || answer.services.length === 0;
    if (!answer) return;
    fill(summary, answer.services.length > 0 ? `${formatDuration(answer.total)} of CPU, ${formatShare(answer.share)} of the fleet, in ${countOf(answer.services_total, "service")}` : "");
    if (answer.services.length > 0) table.show(answer.services, state.sort || "total");
    else loader.say(element("p", { class: "message-title" }, `No function that matches “${visibleText(answer.search)}” ran in this range.`), element("p", { class: "message-hint" }, "Any part of a name will do, =name means this one alone. A longer range may hold it."));
  };
  const load = async (/** @type {boolean} */ isQuiet) => {
    const { from, until, search, mode } = store.get();
    if (search === "") {
      answer = null;
      fill(summary, "");
      list.hidden = true;
      return loader.say(element("p", { class: "message-title" }, "Which services spend time in a function?"), element("p", { class: "message-hint" }, "Type a part of its name."));
    }
    const found = await loader.run("Searching the fleet", (signal) => getJson("search", { from, until, search, mode: mode === "regex" ? "regex" : "" }, signal), { isQuiet });
    if (!found) return undefined;
    loader.clear();
    answer = found;
    return show();
  };
  fill(place, element("div", { class: "view-head" }, element("h1", {}, "Search"), element("div", { class: "search" }, input, regex), summary), panel);
  show();
  load(false);
  if (store.get().search === "") input.focus();
  return {
    update(state, previous) {
      show();
      if (["from", "until", "search", "mode"].some((key) => state[/** @type {keyof State} */ (key)] !== previous[/** @type {keyof State} */ (key)])) load(false);
    },
    refresh: () => load(true),
    unmount: () => loader.cancel(),
  };
}

/**
 * The address of a service's graph with the found functions in focus.
 * @param {State} state
 * @param {FoundService} row
 */
function graphAddress(state, row) {
  const one = row.functions_total === 1 ? exactly(row.functions[0].name) : state.mode === "regex" ? `~${state.search}` : state.search;
  return addressFromState({ ...stateOfView(state, "service", row.service), focus: one });
}

/**
 * @param {() => State} state
 * @returns {import("./data-table.js").Column<FoundService>[]}
 */
function columnsFor(state) {
  return [
    { key: "service", label: "Service", value: (row) => row.service, cell: (row) => element("a", { class: "name", href: graphAddress(state(), row), "data-route": true }, visibleText(row.service)) },
    { key: "total", label: "Total", title: "CPU time in stacks with the function", value: (row) => row.total, isDescending: true, isNumber: true, cell: (row) => formatDuration(row.total) },
    { key: "share", label: "Of the service", value: (row) => row.share, isDescending: true, isNumber: true, cell: (row) => shareBar(row.share) },
    { key: "fleet", label: "Of the fleet", value: (row) => row.fleet_share, isDescending: true, isNumber: true, cell: (row) => formatShare(row.fleet_share) },
    { key: "self", label: "Self", title: "CPU time in the function itself", value: (row) => row.self, isDescending: true, isNumber: true, cell: (row) => formatDuration(row.self) },
    { key: "trend", label: "Share over time", value: (row) => row.share, isFixed: true, cell: (row) => sparkLine(row.trend, `Share of ${visibleText(row.service)} over time`) },
    { key: "hosts", label: "Hosts", value: (row) => row.hosts, isDescending: true, isNumber: true, cell: (row) => formatCount(row.hosts) },
    { key: "functions", label: "Functions", value: (row) => row.functions_total, isDescending: true, cell: functionsCell },
  ];
}

/** @param {FoundService} row */
function functionsCell({ functions, functions_total }) {
  const rest = functions_total - functions.length;
  const names = functions.map((one) => visibleText(one.name)).join(", ");
  return element("span", { class: "name is-quiet", title: names }, `${functions.length > 0 ? visibleText(functions[0].name) : ""}${functions_total > 1 ? ` and ${formatCount(functions.length - 1 + rest)} more` : ""}`);
}
