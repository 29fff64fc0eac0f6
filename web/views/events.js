// SPDX-License-Identifier: Apache-2.0
/** Events: functions whose share of their service changed beyond noise, each leading to its report or its comparison. */

import { formatPoints, intervalWords } from "../core/diff-words.js";
import { absoluteRange } from "../core/range.js";
import { addressFromState, stateOfComparison, stateOfView } from "../core/route.js";
import { visibleText } from "../core/text.js";
import { formatAge, formatClock, formatCount, formatDay, formatShare } from "../core/units.js";
import { getJson } from "../net/api.js";
import { makeDataTable } from "./data-table.js";
import { element, fill } from "./dom.js";
import { errorBar } from "./error-bar.js";
import { makeLoader } from "./loader.js";

/**
 * @typedef {import("../net/api.js").EventRow} EventRow
 * @typedef {import("../state/store.js").Store} Store
 * @typedef {import("./fleet.js").Context} Context
 * @typedef {import("./fleet.js").View} View
 */

const DEFAULT_SORT = "when";

/**
 * @param {HTMLElement} place
 * @param {Context} context
 * @returns {View}
 */
export function mountEvents(place, { store }) {
  const filter = element("input", {
    class: "input",
    type: "search",
    placeholder: "Filter events",
    "aria-label": "Filter events by service, function or version",
    "data-search": true,
    oninput: () => store.set({ search: filter.value }, { replace: true }),
  });
  /** The server's clock, and the end of the scale of all intervals. */
  const common = { now_s: 0, most: 0.01 };
  const table = makeDataTable({ caption: "Events, the latest first", columns: eventColumns(store, common), onSort: (sort) => store.set({ sort }), className: "events-table is-cards" });
  const none = element("p", { class: "table-none", hidden: true });
  const cut = element("p", { class: "table-note", hidden: true });
  const list = element("div", { class: "card", hidden: true }, element("div", { class: "card-head" }, element("h2", {}, "Changes of share"), filter), table.root, none, cut);
  const panel = element("section", { class: "panel", "aria-label": "Events" }, list);
  const loader = makeLoader(panel, { retry: () => load(false) });
  /** @type {EventRow[]} */
  let events = [];

  const show = () => {
    const state = store.get();
    filter.value = state.search;
    const wanted = state.search.toLowerCase();
    const rows = events.filter((row) => [row.service, row.function, row.version ?? ""].some((text) => text.toLowerCase().includes(wanted)));
    common.most = Math.max(0.001, ...rows.map((row) => Math.max(Math.abs(row.low), Math.abs(row.high))));
    table.show(rows, state.sort || DEFAULT_SORT);
    list.hidden = events.length === 0;
    none.hidden = rows.length > 0;
    none.textContent = `No event holds “${state.search}”.`;
    if (events.length === 0) loader.say(...emptyWords());
  };
  const load = async (/** @type {boolean} */ isQuiet) => {
    const { from, until } = store.get();
    const read = (/** @type {AbortSignal} */ signal) => Promise.all([getJson("events", { from, until }, signal), getJson("now", {}, signal)]);
    const answers = await loader.run("Reading the events", read, { isQuiet });
    if (!answers) return;
    events = answers[0].events;
    common.now_s = answers[1].now_s;
    cut.hidden = answers[0].events_total <= events.length;
    cut.textContent = `The latest ${formatCount(events.length)} of ${formatCount(answers[0].events_total)}. Choose a shorter range to see others.`;
    show();
  };
  fill(place, element("div", { class: "view-head" }, element("h1", {}, "Events")), panel);
  load(false);
  return {
    update(state, previous) {
      if (state.from !== previous.from || state.until !== previous.until) load(false);
      else show();
    },
    refresh: () => load(true),
    unmount: () => loader.cancel(),
  };
}

/**
 * @param {Store} store
 * @param {{now_s: number, most: number}} common
 * @returns {import("./data-table.js").Column<EventRow>[]}
 */
function eventColumns(store, common) {
  return [
    { key: "function", label: "Function", value: (row) => row.function, cell: (row) => functionCell(row, store) },
    {
      key: "change", label: "Change", title: "In points of the service's CPU; sorted by size", value: (row) => Math.abs(row.change), isDescending: true, isNumber: true,
      cell: (row) => element("span", { class: `change-number is-${row.change > 0 ? "more" : "less"}` }, formatPoints(row.change)),
    },
    {
      key: "interval", label: "95 % interval", value: () => null, isFixed: true,
      cell: (row) => element("span", { title: `${intervalWords(row.low, row.high)} points` }, errorBar({ ...row, isNoise: false }, common.most)),
    },
    { key: "share", label: "Share", title: "Of the service's CPU", value: (row) => row.after, isDescending: true, isNumber: true, cell: (row) => `${formatShare(row.before)} → ${formatShare(row.after)}` },
    { key: "service", label: "Service", value: (row) => row.service, cell: (row) => serviceCell(row, store) },
    { key: "when", label: "Since", value: (row) => row.at_s, isDescending: true, cell: (row) => whenCell(row, common.now_s) },
    { key: "cause", label: "Came with", value: (row) => row.version, cell: (row) => causeCell(row, store) },
    { key: "compare", label: "Compare", value: () => null, isFixed: true, cell: (row) => compareCell(row, store) },
  ];
}

/** @param {EventRow} row @param {Store} store */
function functionCell(row, store) {
  const { explains } = row;
  const more = explains.length > 2 ? ` and ${explains.length - 2} more` : "";
  const words = explains.length ? `explains ${explains.slice(0, 2).map(visibleText).join(", ")}${more}` : row.change > 0 ? "more than before" : "less than before";
  return [
    element("a", { class: "function-name name", href: compareAddress(row, store), "data-route": true, title: `${visibleText(row.function)}\nFind it in the comparison` }, visibleText(row.function)),
    element("span", { class: "function-binary" }, words),
  ];
}

/** @param {EventRow} row @param {Store} store */
function compareAddress({ compare, function: name, change, after }, store) {
  const [a, b] = [compare.a, compare.b].map((side) => absoluteRange(side.from_s, side.until_s));
  const comparison = { a: compare.a.query, aFrom: a.from, aUntil: a.until, b: compare.b.query, bFrom: b.from, bUntil: b.until };
  const shape = /** @type {import("../core/compare.js").Shape} */ (change < 0 && after === 0 ? "a" : "b");
  return addressFromState({ ...stateOfComparison(store.get(), { ...comparison, shape }), search: name });
}

/** @param {EventRow} row @param {Store} store */
function serviceCell({ service }, store) {
  return element("a", { class: "deploy-service name", href: addressFromState(stateOfView(store.get(), "service", service)), "data-route": true }, visibleText(service));
}

/** @param {EventRow} row @param {number} now_s */
function whenCell({ at_s }, now_s) {
  const age = formatAge(Math.max(0, now_s - at_s));
  return [`${formatDay(at_s)} ${formatClock(at_s, false)}`, element("span", { class: "is-quiet" }, age === "now" ? " now" : ` ${age} ago`)];
}

/** @param {EventRow} row @param {Store} store */
function causeCell({ deploy_id, version }, store) {
  if (!deploy_id) return element("span", { class: "is-quiet" }, "no deploy");
  const href = addressFromState({ ...stateOfView(store.get(), "deploy"), id: deploy_id });
  return element("a", { class: "deploy-service name", href, "data-route": true, title: "The report of the deploy" }, visibleText(version ?? ""));
}

/** @param {EventRow} row @param {Store} store */
function compareCell(row, store) {
  return element("a", { class: "button is-small", href: compareAddress(row, store), "data-route": true }, "Before / after");
}

/** @returns {Node[]} */
function emptyWords() {
  return [
    element("p", { class: "message-title" }, "Nothing changed beyond noise in this range."),
    element("p", { class: "message-hint" }, "Each service's largest functions are watched. One that takes at least 0.5 % of its service more or less than it usually wanders, after a deploy or without one, is listed here and sent to webhooks."),
  ];
}
