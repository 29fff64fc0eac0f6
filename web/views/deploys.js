// SPDX-License-Identifier: Apache-2.0
/** Deploys: which version replaced which, when, how far it has come, each leading to what it changed. */

import { comparisonOfDeploy } from "../core/compare.js";
import { addressFromState, stateOfComparison, stateOfView } from "../core/route.js";
import { countOf, visibleText } from "../core/text.js";
import { formatAge, formatClock, formatCount, formatDay } from "../core/units.js";
import { getJson } from "../net/api.js";
import { makeDataTable } from "./data-table.js";
import { element, fill } from "./dom.js";
import { makeLoader } from "./loader.js";
import { toneOf } from "./deploy-report.js";
import { badge } from "./parts.js";

/**
 * @typedef {import("../net/api.js").DeployRow} DeployRow
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
export function mountDeploys(place, { store }) {
  const filter = element("input", {
    class: "input",
    type: "search",
    placeholder: "Filter deploys",
    "aria-label": "Filter deploys by service, version or note",
    "data-search": true,
    oninput: () => store.set({ search: filter.value }, { replace: true }),
  });
  /** The server's clock at the last reading: ages are told by it, not by this machine's. */
  const clock = { now_s: 0 };
  const table = makeDataTable({
    caption: "Deploys, the latest first",
    columns: deployColumns(store, clock),
    onSort: (sort) => store.set({ sort }),
    className: "deploys-table is-cards",
  });
  const none = element("p", { class: "table-none", hidden: true });
  const cut = element("p", { class: "table-note", hidden: true });
  const list = element("div", { class: "card" }, element("div", { class: "card-head" }, element("h2", {}, "Versions"), filter), table.root, none, cut);
  const panel = element("section", { class: "panel", "aria-label": "Deploys" }, list);
  const loader = makeLoader(panel, { retry: () => load(false) });
  /** @type {DeployRow[]} */
  let deploys = [];

  const show = () => {
    const state = store.get();
    filter.value = state.search;
    const wanted = state.search.toLowerCase();
    const rows = deploys.filter((row) => [row.service, row.version, row.replaced, row.annotation ?? ""].some((text) => text.toLowerCase().includes(wanted)));
    table.show(rows, state.sort || DEFAULT_SORT);
    list.hidden = deploys.length === 0;
    none.hidden = rows.length > 0;
    none.textContent = `No deploy holds “${state.search}”.`;
    if (deploys.length === 0) loader.say(...emptyWords(store));
  };
  const load = async (/** @type {boolean} */ isQuiet) => {
    const { from, until } = store.get();
    const read = (/** @type {AbortSignal} */ signal) => Promise.all([getJson("deploys", { from, until }, signal), getJson("now", {}, signal)]);
    const answers = await loader.run("Reading the deploys", read, { isQuiet });
    if (!answers) return;
    deploys = answers[0].deploys;
    cut.hidden = answers[0].deploys_total <= deploys.length;
    cut.textContent = `The latest ${formatCount(deploys.length)} of ${formatCount(answers[0].deploys_total)}. Choose a shorter range to see others.`;
    clock.now_s = answers[1].now_s;
    show();
  };
  list.hidden = true;
  fill(place, element("div", { class: "view-head" }, element("h1", {}, "Deploys")), panel);
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
 * @param {{now_s: number}} clock
 * @returns {import("./data-table.js").Column<DeployRow>[]}
 */
function deployColumns(store, clock) {
  return [
    { key: "service", label: "Service", value: (row) => row.service, cell: (row) => serviceCell(row, store) },
    { key: "version", label: "Version", value: (row) => row.version, cell: (row) => versionCell(row, store) },
    { key: "when", label: "First seen", value: (row) => row.first_seen_s, isDescending: true, cell: (row) => whenCell(row, clock) },
    { key: "hosts", label: "Hosts", title: "Hosts that run it, of those that run the service", value: (row) => row.hosts_done / row.hosts_total, isDescending: true, cell: hostsCell },
    { key: "verdict", label: "Verdict", title: "What it changed; sorted by CPU", value: (row) => row.verdict && !row.verdict.is_noise ? row.verdict.change : null, isDescending: true, cell: (row) => verdictCell(row, store) },
    { key: "note", label: "Note", value: (row) => row.annotation, cell: (row) => element("span", { class: "deploy-note" }, row.annotation ? visibleText(row.annotation.replaceAll("\n", " · ")) : "") },
    { key: "compare", label: "Compare", value: () => null, isFixed: true, cell: (row) => compareCell(row, store) },
  ];
}

/** @param {DeployRow} row @param {Store} store */
function serviceCell({ service }, store) {
  const href = addressFromState(stateOfView(store.get(), "service", service));
  return element("a", { class: "deploy-service name", href, "data-route": true }, visibleText(service));
}

/** @param {DeployRow} row @param {Store} store */
function reportLink({ id }, store) {
  return { href: addressFromState({ ...stateOfView(store.get(), "deploy"), id }), "data-route": true };
}

/** @param {DeployRow} row @param {Store} store */
function verdictCell(row, store) {
  const words = row.verdict === null ? "waiting for data" : row.verdict.words;
  return element("a", { class: `verdict-words ${toneOf(row)}`, ...reportLink(row, store), title: "The report" }, words);
}

/** @param {DeployRow} row @param {Store} store */
function versionCell(row, store) {
  const { version, replaced } = row;
  return element("a", { class: "deploy-change name", ...reportLink(row, store), title: row.is_return ? "The version came back: the report" : "The report" },
    element("span", { class: "is-quiet" }, visibleText(replaced)), element("span", { class: "is-quiet", "aria-label": row.is_return ? "taken back to" : "replaced by" }, row.is_return ? " ↩ " : " → "), element("b", {}, visibleText(version)));
}

/** @param {DeployRow} row @param {{now_s: number}} clock */
function whenCell({ first_seen_s }, { now_s }) {
  const age = formatAge(Math.max(0, now_s - first_seen_s));
  return [`${formatDay(first_seen_s)} ${formatClock(first_seen_s, false)}`, element("span", { class: "is-quiet" }, age === "now" ? " now" : ` ${age} ago`)];
}

/** @param {DeployRow} row */
function hostsCell({ hosts_done, hosts_total }) {
  if (hosts_done >= hosts_total) return `all ${hosts_total}`;
  return badge(`${hosts_done} of ${hosts_total}`, "amber", `${countOf(hosts_total - hosts_done, "host")} still ran the version before when it came`);
}

/** @param {DeployRow} row @param {Store} store */
function compareCell(row, store) {
  const href = addressFromState(stateOfComparison(store.get(), comparisonOfDeploy(row)));
  const [words, title] = row.compare.is_canary
    ? ["Canary", "Both versions in the minutes in which both ran"]
    : ["Before / after", "The versions in ranges of equal length around the change"];
  return element("a", { class: "button is-small", href, title, "data-route": true }, words);
}

/** @param {Store} store @returns {Node[]} */
function emptyWords(store) {
  const longer = () => store.set({ from: "-7d", until: "now", live: true });
  const isLonger = store.get().from !== "-7d";
  return [
    element("p", { class: "message-title" }, "No version replaced another in this range."),
    element("p", { class: "message-hint" }, "A deploy is seen by itself, when a service comes back with another version: service.version in its OTEL_RESOURCE_ATTRIBUTES, else the build ID of its program."),
    isLonger && element("p", { class: "message-actions" }, element("button", { class: "button", type: "button", onclick: longer }, "Show the last 7 days")),
  ].filter((each) => each instanceof Node);
}
