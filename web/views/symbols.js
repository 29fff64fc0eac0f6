// SPDX-License-Identifier: Apache-2.0
/** Binaries and their names: which have none, why, and what it costs in CPU that cannot be read. */

import { visibleText } from "../core/text.js";
import { formatCount, formatDuration } from "../core/units.js";
import { getJson } from "../net/api.js";
import { makeDataTable } from "./data-table.js";
import { element, fill } from "./dom.js";
import { makeLoader } from "./loader.js";
import { badge, statTile } from "./parts.js";

/**
 * @typedef {import("../net/api.js").BinaryRow} BinaryRow
 * @typedef {import("./fleet.js").Context} Context
 * @typedef {import("./fleet.js").View} View
 */

/** Worst first. @type {Readonly<Record<string, {rank: number, words: string, tone: "amber" | "grey" | "green" | "red"}>>} */
const STATES = Object.freeze({
  failed: { rank: 3, words: "failed", tone: "red" },
  none: { rank: 2, words: "no names", tone: "amber" },
  wanted: { rank: 1, words: "asked for", tone: "grey" },
  pending: { rank: 1, words: "being read", tone: "grey" },
  named: { rank: 0, words: "named", tone: "green" },
});
/** What binaries without a path are, by the proto's BinaryKind. @type {Readonly<Record<number, string>>} */
const KIND_WORDS = Object.freeze({ 2: "[kernel]", 3: "[kernel module]", 4: "[vdso]" });

/**
 * @param {HTMLElement} place
 * @param {Context} context
 * @returns {View}
 */
export function mountSymbols(place, { store }) {
  const stats = element("dl", { class: "stats" });
  const filter = element("input", {
    class: "input",
    type: "search",
    placeholder: "Filter binaries",
    "aria-label": "Filter binaries",
    "data-search": true,
    oninput: () => store.set({ search: filter.value }, { replace: true }),
  });
  const table = makeDataTable({ caption: "Binaries, unnamed ones first", columns: binaryColumns(), onSort: (sort) => store.set({ sort }), className: "is-cards symbols-table" });
  const list = element("div", { class: "card" }, element("div", { class: "card-head" }, element("h2", {}, "Binaries"), filter), table.root);
  const panel = element("section", { class: "panel", "aria-label": "Binaries" }, list);
  const loader = makeLoader(panel, { retry: () => load(false) });
  /** @type {BinaryRow[]} */
  let binaries = [];
  const show = () => {
    const state = store.get();
    const wanted = state.search.toLowerCase();
    filter.value = state.search;
    table.show(binaries.filter((row) => row.path.toLowerCase().includes(wanted) || row.build_id.startsWith(wanted)), state.sort || "state");
    const named = binaries.filter((row) => row.state === "named").length;
    fill(stats, statTile("Binaries", formatCount(binaries.length)), statTile("Named", formatCount(named)), statTile("Without names", formatCount(binaries.length - named)));
    list.hidden = binaries.length === 0;
    if (binaries.length === 0) loader.say(element("p", { class: "message-title" }, "No binary has been seen yet."), element("p", { class: "message-hint" }, "They are listed with the first samples."));
  };
  const load = async (/** @type {boolean} */ isQuiet) => {
    const { from, until } = store.get();
    const answer = await loader.run("Reading the binaries", (signal) => getJson("symbols", { from, until }, signal), { isQuiet });
    if (!answer) return;
    binaries = answer.binaries;
    show();
  };
  fill(place, element("div", { class: "view-head" }, element("h1", {}, "Symbols"), stats), panel);
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

/** @returns {import("./data-table.js").Column<BinaryRow>[]} */
function binaryColumns() {
  const stateOf = (/** @type {BinaryRow} */ row) => STATES[row.state] ?? { rank: 1, words: row.state, tone: /** @type {const} */ ("grey") };
  // Within a state the most CPU first: below the rank, and never reaching the next.
  const order = (/** @type {BinaryRow} */ row) => stateOf(row).rank + Math.min(0.999, Math.log10(1 + (row.cpu_ns ?? 0)) / 30);
  return [
    { key: "path", label: "Binary", value: (row) => row.path, cell: (row) => element("span", { class: "name path" }, visibleText(row.path) || KIND_WORDS[row.kind ?? 0] || "(no path)") },
    { key: "state", label: "State", value: order, isDescending: true, cell: (row) => badge(stateOf(row).words, stateOf(row).tone) },
    { key: "reason", label: "Why", value: (row) => row.reason, cell: (row) => visibleText(row.reason) || element("span", { class: "is-quiet" }, "–") },
    {
      key: "cpu",
      label: "CPU",
      value: (row) => row.cpu_ns ?? null,
      isDescending: true,
      isNumber: true,
      cell: (row) => (row.cpu_ns === null || row.cpu_ns === undefined ? "–" : formatDuration(row.cpu_ns)),
    },
    {
      key: "build",
      label: "Build id",
      value: (row) => row.build_id || null,
      cell: (row) => element("span", { class: "name is-quiet", title: row.build_id }, row.build_id ? row.build_id.slice(0, 12) : "none"),
    },
  ];
}
