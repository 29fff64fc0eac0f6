// SPDX-License-Identifier: Apache-2.0
/** A service's locks: how long threads waited for each, who waits, who holds, and the blame of it as a graph. */

import { formatCount, formatDuration } from "../core/units.js";
import { visibleText } from "../core/text.js";
import { element, fill } from "./dom.js";
import { makeGraphPanes } from "./graph-panes.js";
import { makeLatencyPanel } from "./latency-panel.js";
import { makeLossStrip } from "./loss-strip.js";
import { latencyColumns, makeObjectTable, nameCell, numberColumn } from "./object-table.js";
import { named, startObjectView } from "./object-view.js";
import { brushed, makeServiceHead, selectionOf, unbrushed } from "./service-head.js";
import { waitSource } from "./wait-source.js";

/**
 * @typedef {import("../core/route.js").State} State
 * @typedef {import("./fleet.js").Context} Context
 * @typedef {import("./fleet.js").View} View
 * @typedef {import("./object-table.js").ObjectRow} ObjectRow
 */

const SELECTION_KEYS = /** @type {const} */ (["from", "until", "hosts", "versions", "object", "stacks"]);

/**
 * @param {HTMLElement} place
 * @param {Context} context
 * @returns {View}
 */
export function mountLocks(place, context) {
  const { store, signal } = context;
  const time = { choose: (/** @type {import("../core/range.js").Range} */ range) => brushed(store, range), back: () => unbrushed(store) };
  const ofAll = () => selectionOf(store.get());
  const ofChosen = () => selectionOf(store.get(), store.get().object === "" ? {} : { object: [store.get().object] });
  const choose = (/** @type {string} */ object) => store.set({ object, at: "" });
  const heat = makeLatencyPanel({ title: "Waits for locks", what: "waits", signal, parameters: ofChosen, ...time, rename: () => named("Waits for locks", store.get().object) });
  const table = makeObjectTable({
    store,
    title: "Locks",
    noun: ["lock", "locks"],
    none: "No waits for locks in this range.",
    columns: lockColumns(choose),
    usualSort: "total",
    parameters: () => ({ ...ofAll(), functions: 1 }),
    summary: ({ totals, rows_total }) => `${formatCount(rows_total)} waited for, ${formatDuration(totals.ns ?? 0)} in all`,
    chosen: () => store.get().object,
    choose,
  });
  const strip = makeLossStrip("waits");
  const blame = element("button", { class: "button toggle", type: "button", title: "Below who waits, mirrored, who held the lock", onclick: () => store.set({ stacks: store.get().stacks === "first" ? "" : "first", at: "" }) }, "Who holds");
  const body = makeGraphPanes(context, {
    selection: () => ({ ...ofChosen(), stacks: store.get().stacks || "both" }),
    selectionKeys: SELECTION_KEYS,
    onAnswer: (answer) => strip.show(answer.quality),
    source: waitSource({ title: "Blame", waited: "waited for locks", none: "No waits for this lock in this range." }),
    side: table.root,
    tools: [blame],
  });
  const head = makeServiceHead(context, { selection: ofChosen, graph: body.graph });
  fill(place, head.root, heat.root, element("section", { class: "card strip-card" }, strip.root), body.toolbar.root, body.panes, body.dialog);
  const showControls = (/** @type {State} */ state) => {
    head.update(state);
    blame.setAttribute("aria-pressed", String(state.stacks !== "first"));
  };
  return startObjectView(store, { heat, table, body, showControls });
}

/**
 * @param {(name: string) => void} choose
 * @returns {import("./object-table.js").ObjectColumn[]}
 */
function lockColumns(choose) {
  return [
    { key: "name", label: "Lock", value: (row) => row.name, cell: (row) => nameCell(row.name, () => choose(row.name), ...whoLines(row)) },
    numberColumn("count", "Waits", (row) => row.values.count ?? 0, { stored: "count" }),
    numberColumn("total", "Total", (row) => row.values.ns ?? 0, { format: formatDuration, stored: "ns", title: "Time waited, by all threads" }),
    ...latencyColumns("bucket"),
    numberColumn("max", "Max", (row) => row.values.max_ns ?? null, { format: formatDuration, stored: "max_ns" }),
  ];
}

/** Who waits and who holds: the functions with most of its time. @param {ObjectRow} row */
function whoLines({ first = [], second = [] }) {
  const name = (/** @type {Array<{name: string}>} */ functions) => functions.find((each) => each.name !== "")?.name;
  const lines = /** @type {const} */ ([["waits", name(first)], ["holds", name(second)]]);
  return lines.flatMap(([verb, who]) => (who === undefined ? [] : [element("span", { class: "who" }, element("span", { class: "who-verb" }, verb), element("span", { class: "name" }, visibleText(who)))]));
}
