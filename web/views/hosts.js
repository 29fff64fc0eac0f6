// SPDX-License-Identifier: Apache-2.0
/** Agents: what each costs, what it lost, when it was last heard. Odd ones first. */

import { flagWords } from "../core/flag-words.js";
import { isLossGrave, lossesByReason, mainReason } from "../core/quality.js";
import { countOf, visibleText } from "../core/text.js";
import { formatAge, formatBytes, formatCount, formatLoss } from "../core/units.js";
import { getJson } from "../net/api.js";
import { makeDataTable } from "./data-table.js";
import { element, fill } from "./dom.js";
import { makeLoader } from "./loader.js";
import { badge, statTile } from "./parts.js";

/**
 * @typedef {import("../net/api.js").AgentRow} AgentRow
 * @typedef {import("./fleet.js").Context} Context
 * @typedef {import("./fleet.js").View} View
 */


/**
 * How odd an agent is: silent ones before losing ones before those that stepped down.
 * @param {AgentRow} row
 */
function oddness({ is_silent, lost_share, flags }) {
  return (is_silent ? 4 : 0) + (isLossGrave(lost_share) ? 2 : 0) + (flags.length > 0 ? 1 : 0);
}

/**
 * @param {HTMLElement} place
 * @param {Context} context
 * @returns {View}
 */
export function mountHosts(place, { store }) {
  const stats = element("dl", { class: "stats" });
  const filter = element("input", {
    class: "input",
    type: "search",
    placeholder: "Filter hosts",
    "aria-label": "Filter hosts",
    "data-search": true,
    oninput: () => store.set({ search: filter.value }, { replace: true }),
  });
  /** The server's clock at the last reading: ages are told by it, not by this machine's. */
  const clock = { now_s: 0 };
  const table = makeDataTable({ caption: "Agents, odd ones first", columns: agentColumns(clock), onSort: (sort) => store.set({ sort }), className: "is-cards" });
  const list = element("div", { class: "card" }, element("div", { class: "card-head" }, element("h2", {}, "Agents"), filter), table.root);
  const panel = element("section", { class: "panel", "aria-label": "Agents" }, list);
  const loader = makeLoader(panel, { retry: () => load(false) });
  /** @type {AgentRow[]} */
  let agents = [];
  const show = () => {
    const state = store.get();
    const wanted = state.search.toLowerCase();
    filter.value = state.search;
    const rows = agents.filter((row) => row.host.toLowerCase().includes(wanted));
    table.show(rows, state.sort || "state");
    const silent = agents.filter((row) => row.is_silent).length;
    const losing = agents.filter((row) => isLossGrave(row.lost_share)).length;
    fill(stats, statTile("Hosts", formatCount(agents.length)), statTile("Silent", silent > 0 ? badge(String(silent), "amber") : "0"), statTile("Losing samples", losing > 0 ? badge(String(losing), "amber") : "0"));
    list.hidden = agents.length === 0;
    if (agents.length === 0) loader.say(element("p", { class: "message-title" }, "No agent has reported yet."), element("p", {}, element("a", { class: "button", href: "/", "data-route": true }, "How to start one")));
  };
  const load = async (/** @type {boolean} */ isQuiet) => {
    const { from, until } = store.get();
    const read = (/** @type {AbortSignal} */ signal) => Promise.all([getJson("agents", { from, until }, signal), getJson("now", {}, signal)]);
    const answers = await loader.run("Reading the agents", read, { isQuiet });
    if (!answers) return;
    agents = answers[0].agents;
    clock.now_s = answers[1].now_s;
    show();
  };
  fill(place, element("div", { class: "view-head" }, element("h1", {}, "Hosts"), stats), panel);
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
 * @param {{now_s: number}} clock
 * @returns {import("./data-table.js").Column<AgentRow>[]}
 */
function agentColumns(clock) {
  const share = (/** @type {number | null} */ value) => (value === null || value === undefined ? "–" : formatLoss(value));
  const size = (/** @type {number | null} */ value) => (value === null || value === undefined ? "–" : formatBytes(value));
  return [
    { key: "host", label: "Host", value: (row) => row.host, cell: (row) => element("span", { class: "name", title: row.agent_id }, visibleText(row.host)) },
    { key: "state", label: "State", value: oddness, isDescending: true, cell: (row) => stateCell(row, clock) },
    { key: "seen", label: "Last seen", value: (row) => row.last_seen_s, isDescending: true, isNumber: true, cell: (row) => seenCell(row, clock) },
    { key: "lost", label: "Lost", value: (row) => row.lost_share, isDescending: true, isNumber: true, cell: lostCell },
    { key: "cpu", label: "Agent CPU", title: "Its own, of one core", value: (row) => row.cpu_share, isDescending: true, isNumber: true, cell: (row) => share(row.cpu_share) },
    { key: "bpf", label: "BPF", title: "Time in its programs, of one core", value: (row) => row.bpf_share, isDescending: true, isNumber: true, cell: (row) => share(row.bpf_share) },
    { key: "rss", label: "Memory", value: (row) => row.rss_bytes, isDescending: true, isNumber: true, cell: (row) => size(row.rss_bytes) },
    { key: "maps", label: "Maps", title: "Memory of its BPF maps", value: (row) => row.map_bytes, isDescending: true, isNumber: true, cell: (row) => size(row.map_bytes) },
    { key: "rate", label: "Rate", value: (row) => row.rate_hz, isDescending: true, isNumber: true, cell: (row) => `${row.rate_hz} Hz` },
    { key: "cpus", label: "CPUs", value: (row) => row.cpus, isDescending: true, isNumber: true, cell: (row) => formatCount(row.cpus) },
    { key: "kernel", label: "Kernel", value: (row) => row.kernel, cell: (row) => element("span", { class: "name is-quiet" }, visibleText(row.kernel)) },
    { key: "version", label: "Agent", value: (row) => row.version, cell: (row) => element("span", { class: "name is-quiet" }, visibleText(row.version)) },
  ];
}

/** @param {AgentRow} row @param {{now_s: number}} clock */
function stateCell(row, clock) {
  if (row.is_silent) return badge("silent", "amber", `Nothing was heard from it for ${ageOf(row, clock)}`);
  if (isLossGrave(row.lost_share)) return badge("losing samples", "amber", mainReason(row.lost));
  if (row.flags.length > 0) return badge(visibleText(flagWords(row.flags[0])), "grey", visibleText(row.flags.map(flagWords).join("; ")));
  return element("span", { class: "is-quiet" }, "fine");
}

/** @param {AgentRow} row @param {{now_s: number}} clock */
function ageOf({ last_seen_s }, { now_s }) {
  return formatAge(Math.max(0, now_s - last_seen_s));
}

/** @param {AgentRow} row @param {{now_s: number}} clock */
function seenCell(row, clock) {
  const age = ageOf(row, clock);
  return age === "now" ? "now" : `${age} ago`;
}

/** @param {AgentRow} row */
function lostCell({ lost, lost_share }) {
  const reasons = lossesByReason(lost);
  const words = reasons.map(({ words: cause, count }) => `${countOf(count, "sample")}: ${cause}`).join("; ");
  if (isLossGrave(lost_share)) return badge(formatLoss(lost_share), "amber", words);
  return element("span", { class: "is-quiet", title: words }, formatLoss(lost_share));
}
