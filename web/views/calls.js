// SPDX-License-Identifier: Apache-2.0
/** A service's system calls: how many, how long, which errors; the time of the chosen one; and from where bytes are moved. */

import { IO_CALLS } from "../core/kinds.js";
import { selectorText } from "../core/selector.js";
import { visibleText } from "../core/text.js";
import { formatCount, formatDuration } from "../core/units.js";
import { badge } from "./parts.js";
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

const SELECTION_KEYS = /** @type {const} */ (["from", "until", "hosts", "versions", "object"]);
const MOST_ERRORS = 3;

/**
 * @param {HTMLElement} place
 * @param {Context} context
 * @returns {View}
 */
export function mountCalls(place, context) {
  const { store, signal } = context;
  const time = { choose: (/** @type {import("../core/range.js").Range} */ range) => brushed(store, range), back: () => unbrushed(store) };
  // A call that fails is a row of its own, name:ERRNO: the conditions take both.
  const ofChosen = () => {
    const { service, hosts, versions, from, until, object } = store.get();
    const query = selectorText("syscall", { service: [service], host: hosts, version: versions });
    return { query: object === "" ? query : query.replace(/\}$/, `,object=~"${object.replace(/[^\w]/g, "")}(:.*)?"}`), from, until };
  };
  const ofStacks = () => {
    const { object, ...state } = store.get();
    return selectionOf({ ...state, object, tab: "syscall_stack" }, { object: object === "" ? IO_CALLS : [object] });
  };
  const choose = (/** @type {string} */ object) => store.set({ object, at: "" });
  const heat = makeLatencyPanel({ title: "How long calls took", what: "calls", signal, parameters: ofChosen, ...time, rename: () => named("How long calls took", store.get().object) });
  const table = makeObjectTable({
    store,
    title: "System calls",
    noun: ["call", "calls"],
    none: "No system calls in this range.",
    columns: callColumns(choose),
    usualSort: "total",
    parameters: () => ({ ...selectionOf({ ...store.get(), tab: "syscall" }), by: "call" }),
    summary: ({ totals, seconds }) => `${formatCount((totals.count ?? 0) / Math.max(seconds, 1e-9))} a second, ${formatDuration(totals.ns ?? 0)} in them`,
    chosen: () => store.get().object,
    choose,
  });
  const strip = makeLossStrip("calls");
  const body = makeGraphPanes(context, {
    selection: ofStacks,
    selectionKeys: SELECTION_KEYS,
    onAnswer: (answer) => strip.show(answer.quality),
    source: waitSource({ title: "Who calls", waited: "in calls", none: "No stacks of these calls in this range.", isOfWaits: false }),
    side: table.root,
    tools: [],
  });
  const said = element("p", { class: "is-quiet card-note graph-of" });
  body.graph.root.querySelector(".card-head h2")?.after(said);
  const head = makeServiceHead(context, { selection: ofChosen, graph: body.graph, compared: "syscall_stack" });
  fill(place, head.root, heat.root, element("section", { class: "card strip-card" }, strip.root), body.toolbar.root, body.panes, body.dialog);
  const showControls = (/** @type {State} */ state) => {
    head.update(state);
    said.textContent = state.object === "" ? "input and output" : visibleText(state.object);
  };
  return startObjectView(store, { heat, table, body, showControls });
}

/** @param {ObjectRow} row */
const failed = ({ errors }) => errors.reduce((sum, { count }) => sum + count, 0);

/**
 * @param {(name: string) => void} choose
 * @returns {import("./object-table.js").ObjectColumn[]}
 */
function callColumns(choose) {
  return [
    { key: "name", label: "Call", value: (row) => row.name, cell: (row) => nameCell(row.name, () => choose(row.name), ...errorLines(row)) },
    numberColumn("count", "Calls", (row) => row.values.count ?? 0, { stored: "count" }),
    { key: "errors", label: "Failed", value: failed, isDescending: true, isNumber: true, cell: (row) => (failed(row) === 0 ? element("span", { class: "is-quiet" }, "0") : formatCount(failed(row))) },
    numberColumn("total", "Total", (row) => row.values.ns ?? 0, { format: formatDuration, stored: "ns", title: "Time in the call, of all threads" }),
    ...latencyColumns("bucket"),
    numberColumn("max", "Max", (row) => row.values.max_ns ?? null, { format: formatDuration, stored: "max_ns" }),
  ];
}

/** Errors by name, the most frequent first. @param {ObjectRow} row */
function errorLines({ errors }) {
  const shown = errors.slice(0, MOST_ERRORS).map(({ error, count }) => badge(`${error} ${formatCount(count)}`, "grey"));
  if (errors.length > MOST_ERRORS) shown.push(badge(`${errors.length - MOST_ERRORS} more`, "grey", errors.map(({ error, count }) => `${error} ${count}`).join(", ")));
  return shown;
}
