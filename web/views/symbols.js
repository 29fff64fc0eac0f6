// SPDX-License-Identifier: Apache-2.0
/** The symbol desk: which binaries lack names, what that costs in CPU that cannot be read, why, and the line that mends it. */

import { deskRows, holdsText, isOpen, qualityWords, whyOf } from "../core/symbol-words.js";
import { visibleText } from "../core/text.js";
import { formatAge, formatCount, formatDuration, formatShare } from "../core/units.js";
import { getJson, postJson } from "../net/api.js";
import { makeDataTable } from "./data-table.js";
import { copyText, element, fill, icon, toast } from "./dom.js";
import { makeLoader } from "./loader.js";
import { badge, shareBar, statTile } from "./parts.js";
import { makeSymbolDetails } from "./symbol-details.js";
import { makeSymbolUpload } from "./symbol-upload.js";

/**
 * @typedef {import("../core/symbol-words.js").DeskRow} DeskRow
 * @typedef {import("./fleet.js").Context} Context
 * @typedef {import("./fleet.js").View} View
 */

const DEFAULT_SORT = "unnamed";
/** How soon it is looked again after a file was taken or something tried: tables take a moment. */
const SOON_MS = 1500;

/**
 * @param {HTMLElement} place
 * @param {Context} context
 * @returns {View}
 */
export function mountSymbols(place, { store, signal }) {
  const stats = element("dl", { class: "stats" });
  const filter = element("input", {
    class: "input",
    type: "search",
    placeholder: "Filter binaries",
    "aria-label": "Filter by path, build ID, service or reason",
    "data-search": true,
    oninput: () => store.set({ search: filter.value }, { replace: true }),
  });
  /** The server's clock at the last reading, and all time without names. */
  const seen = { now_s: 0, unnamed_ns: 0 };
  const soon = () => setTimeout(() => !signal.aborted && load(true), SOON_MS);
  const details = makeSymbolDetails({ retry: (row) => tryAgain(row, soon) });
  const table = makeDataTable({
    caption: "Binaries, the most CPU time without names first",
    columns: columns(seen, (row) => details.open(row, seen.now_s)),
    onSort: (sort) => store.set({ sort }),
    className: "is-cards symbols-table",
  });
  const none = element("p", { class: "table-none", hidden: true });
  const cut = element("p", { class: "table-note", hidden: true });
  const list = element("div", { class: "card" }, element("div", { class: "card-head" }, element("h2", {}, "Binaries"), filter), table.root, none, cut);
  const upload = makeSymbolUpload({ onDone: soon, signal });
  const panel = element("section", { class: "panel symbols-panel", "aria-label": "Binaries" }, upload.root, list);
  const loader = makeLoader(panel, { retry: () => load(false) });
  /** @type {DeskRow[]} */
  let rows = [];

  const show = () => {
    const state = store.get();
    filter.value = state.search;
    const found = rows.filter((row) => holdsText(row, state.search));
    table.show(found, state.sort || DEFAULT_SORT);
    details.update(rows, seen.now_s);
    list.hidden = rows.length === 0;
    none.hidden = found.length > 0;
    none.textContent = `No binary holds “${state.search}”.`;
    if (rows.length === 0) loader.say(element("p", { class: "message-title" }, "No binary ran in this range."), element("p", { class: "message-hint" }, "They are listed with the first samples. Files can be uploaded before: they are kept for the first host that runs them."));
  };
  const load = async (/** @type {boolean} */ isQuiet) => {
    const { from, until } = store.get();
    const read = (/** @type {AbortSignal} */ running) => Promise.all([getJson("symbols", { from, until }, running), getJson("now", {}, running)]);
    const answers = await loader.run("Reading the binaries", read, { isQuiet });
    if (!answers) return;
    rows = deskRows(answers[0]);
    seen.now_s = answers[1].now_s;
    seen.unnamed_ns = rows.reduce((sum, row) => sum + row.unnamed_ns, 0);
    cut.hidden = answers[0].binaries_total <= answers[0].binaries.length;
    cut.textContent = `The ${formatCount(answers[0].binaries.length)} with most time without names, of ${formatCount(answers[0].binaries_total)}.`;
    fill(stats, ...tiles(rows, seen.unnamed_ns, answers[0].pending));
    show();
  };
  list.hidden = true;
  fill(place, element("div", { class: "view-head" }, element("h1", {}, "Symbols"), stats), panel, details.root);
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

/** @param {DeskRow[]} rows @param {number} unnamed_ns @param {number} pending */
function tiles(rows, unnamed_ns, pending) {
  const whole_ns = rows.reduce((sum, row) => sum + row.cpu_ns, 0);
  const open = rows.filter(isOpen).length;
  return [
    statTile("CPU without names", formatDuration(unnamed_ns), whole_ns > 0 && element("span", { class: "is-quiet stat-share" }, formatShare(unnamed_ns / whole_ns))),
    statTile("To mend", open > 0 ? badge(formatCount(open), "amber") : "0"),
    statTile("Binaries", formatCount(rows.length)),
    pending > 0 && statTile("Being read", formatCount(pending)),
  ].filter((each) => each instanceof Node);
}

/** @param {DeskRow} row @param {() => void} soon */
async function tryAgain(row, soon) {
  try {
    await postJson("symbols/retry", { id: row.id });
    toast(`Trying all sources of ${visibleText(row.base)} again.`);
    soon();
  } catch (error) {
    toast(error instanceof Error ? error.message : String(error));
  }
}

/**
 * @param {{now_s: number, unnamed_ns: number}} seen
 * @param {(row: DeskRow) => void} open
 * @returns {import("./data-table.js").Column<DeskRow>[]}
 */
function columns(seen, open) {
  // Within a reason the most time first: below the rank, and never reaching the next.
  const order = (/** @type {DeskRow} */ row) => whyOf(row.why).rank + Math.min(0.999, Math.log10(1 + row.unnamed_ns) / 30);
  return [
    { key: "path", label: "Binary", value: (row) => row.base, cell: (row) => binaryCell(row, open) },
    { key: "unnamed", label: "Without names", title: "CPU time whose innermost frame is in it and has no name", value: (row) => row.unnamed_ns, isDescending: true, cell: (row) => unnamedCell(row, seen) },
    { key: "state", label: "Why", value: order, isDescending: true, cell: (row) => badge(whyOf(row.why).words, whyOf(row.why).tone, visibleText(row.reason)) },
    { key: "names", label: "Names it has", value: (row) => (row.state === "named" ? row.quality : ""), cell: (row) => element("span", { class: "is-quiet" }, row.state === "named" ? qualityWords(row.quality) : "none") },
    { key: "since", label: "Known", title: "Since when the server knows it", value: (row) => row.since_s || null, isDescending: true, cell: (row) => element("span", { class: "is-quiet" }, row.since_s ? formatAge(Math.max(0, seen.now_s - row.since_s)) : "–") },
    { key: "remedy", label: "What mends it", value: () => null, isFixed: true, cell: remedyCell },
  ];
}

/** @param {DeskRow} row @param {(row: DeskRow) => void} open */
function binaryCell(row, open) {
  const where = row.service ? `service ${visibleText(row.service)}` : [visibleText(row.folder), row.build_id.slice(0, 12)].filter(Boolean).join(" · ");
  return element("span", { class: "symbol" },
    element("button", { class: "row-link name symbol-name", type: "button", title: visibleText(row.path), onclick: () => open(row) }, visibleText(row.base)),
    element("span", { class: "name is-quiet symbol-where", title: row.build_id }, where || "no build ID"));
}

/** @param {DeskRow} row @param {{unnamed_ns: number}} seen */
function unnamedCell(row, { unnamed_ns }) {
  if (row.unnamed_ns === 0) return element("span", { class: "is-quiet" }, "–");
  return element("span", { class: "symbol-cost" }, element("span", { class: "symbol-time" }, formatDuration(row.unnamed_ns)), shareBar(row.unnamed_ns / (unnamed_ns || 1)));
}

/** @param {DeskRow} row */
function remedyCell(row) {
  const { words, command } = row.remedy;
  if (!command) return element("span", { class: "is-quiet" }, words);
  const copy = element("button", { class: "button is-icon is-tiny", type: "button", "aria-label": `Copy: ${command}`, title: "Copy", onclick: () => copyText(command, "Copied.") }, icon("copy"));
  return element("span", { class: "symbol-remedy", title: words }, element("code", {}, command), copy);
}
