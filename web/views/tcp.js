// SPDX-License-Identifier: Apache-2.0
/** A service's connections: bytes and retransmits over time, latency, a table of peers, and who talks to whom. */

import { RETRANSMITS_GRAVE, formatRate, peerOfObject, ratesOf, retransmitShare, retransmitsOverTime } from "../core/peers.js";
import { visibleText } from "../core/text.js";
import { formatBytes, formatCount, formatLoss } from "../core/units.js";
import { apiAddress, getJson } from "../net/api.js";
import { element, fill } from "./dom.js";
import { hasChanged } from "./graph-panes.js";
import { makeLatencyPanel } from "./latency-panel.js";
import { makeLoader } from "./loader.js";
import { named } from "./object-view.js";
import { latencyColumns, makeObjectTable, nameCell, numberColumn } from "./object-table.js";
import { badge } from "./parts.js";
import { makeRatePanel } from "./rate-panel.js";
import { brushed, makeServiceHead, selectionOf, unbrushed } from "./service-head.js";
import { makeTalkPanel } from "./talk-panel.js";

/**
 * @typedef {import("../core/route.js").State} State
 * @typedef {import("./fleet.js").Context} Context
 * @typedef {import("./fleet.js").View} View
 * @typedef {import("./object-table.js").ObjectRow} ObjectRow
 */

const TABLE_KEYS = /** @type {const} */ (["from", "until", "hosts", "versions"]);
/** @type {ReadonlyArray<{buckets: string, label: string, title: string, what: string}>} */
const HEATS = [
  { buckets: "", label: "Round trip", title: "Round trip time", what: "round trips" },
  { buckets: "connect", label: "Connect", title: "Time to connect", what: "connects" },
];

/**
 * @param {HTMLElement} place
 * @param {Context} context
 * @returns {View}
 */
export function mountTcp(place, context) {
  const { store, signal } = context;
  const time = { choose: (/** @type {import("../core/range.js").Range} */ range) => brushed(store, range), back: () => unbrushed(store) };
  const ofAll = () => selectionOf(store.get());
  const ofChosen = () => selectionOf(store.get(), store.get().object === "" ? {} : { object: [store.get().object] });
  const choose = (/** @type {string} */ object) => store.set({ object });
  const bytes = makeRatePanel({ title: "Throughput", note: "bytes a second", signal, format: formatRate, label: formatBytes, base: 1024, ...time });
  const again = makeRatePanel({ title: "Sent again", note: "share of segments; the line marks 1 %", signal, format: formatLoss, label: (share) => `${Number((share * 100).toFixed(2))} %`, threshold: RETRANSMITS_GRAVE, ...time });
  const heats = HEATS.map(({ buckets, label, title }) => element("button", { class: "button is-small toggle", type: "button", title, onclick: () => store.set({ buckets }) }, label));
  const heatOf = () => HEATS.find(({ buckets }) => buckets === store.get().buckets) ?? HEATS[0];
  const heat = makeLatencyPanel({
    title: "Latency",
    what: "measured",
    signal,
    parameters: () => ({ ...ofChosen(), buckets: heatOf().buckets || "rtt" }),
    ...time,
    tools: [element("div", { class: "segments", role: "group", "aria-label": "Which latency" }, ...heats)],
    rename: () => named(heatOf().title, store.get().object),
  });
  const rates = element("div", { class: "charts is-even" }, bytes.root, again.root);
  const ratesLoader = makeLoader(bytes.root, { retry: () => loadRates() });
  const loadRates = async ({ isQuiet = false } = {}) => {
    const answer = await ratesLoader.run("Reading bytes over time", (stop) => getJson("columns", ofChosen(), stop), { isQuiet });
    if (!answer) return;
    bytes.show(answer, [
      { key: "out", label: "out", values: ratesOf(answer, "bytes_out") },
      { key: "in", label: "in", values: ratesOf(answer, "bytes_in") },
    ]);
    again.show(answer, [{ key: "again", label: "sent again", values: retransmitsOverTime(answer) }]);
  };
  const table = makeObjectTable({
    store,
    title: "Peers",
    noun: ["peer", "peers"],
    none: "No TCP connections in this range.",
    columns: peerColumns(choose),
    usualSort: "out",
    parameters: ofAll,
    summary: ({ totals }) => `${formatBytes(totals.bytes_out ?? 0)} out, ${formatBytes(totals.bytes_in ?? 0)} in`,
    chosen: () => store.get().object,
    choose,
  });
  const talk = makeTalkPanel(context, { parameters: ofAll });
  const head = makeServiceHead(context, { selection: ofChosen, graph: { address: (format) => apiAddress("table", { ...ofChosen(), ...(format === "json" ? {} : { by: "object" }) }), pinnedRange: () => null }, compared: "" });
  fill(place, head.root, rates, heat.root, element("div", { class: "peers" }, table.root, talk.root));
  const showControls = (/** @type {State} */ state) => {
    head.update(state);
    heats.forEach((button, at) => button.setAttribute("aria-pressed", String(HEATS[at] === heatOf())));
  };
  const loadAll = ({ isQuiet = false } = {}) => {
    loadRates({ isQuiet });
    heat.load({ isQuiet });
    table.load({ isQuiet });
    talk.load({ isQuiet });
  };
  showControls(store.get());
  loadAll();
  return {
    update(state, previous) {
      showControls(state);
      if (hasChanged(state, previous, TABLE_KEYS)) return loadAll();
      if (hasChanged(state, previous, ["object", "buckets"])) heat.load();
      if (hasChanged(state, previous, ["object"])) loadRates();
      if (hasChanged(state, previous, ["object", "sort"])) table.show();
      return undefined;
    },
    refresh: () => loadAll({ isQuiet: true }),
    unmount() {
      for (const part of [heat, table, talk, ratesLoader]) part.cancel();
    },
  };
}

/**
 * @param {(name: string) => void} choose
 * @returns {import("./object-table.js").ObjectColumn[]}
 */
function peerColumns(choose) {
  const value = (/** @type {string} */ name) => (/** @type {ObjectRow} */ row) => row.values[name] ?? 0;
  return [
    { key: "name", label: "Peer", value: (row) => row.name, cell: (row) => peerCell(row, () => choose(row.name)) },
    numberColumn("opened", "Opened", (row) => value("connects")(row) + value("accepts")(row), { title: "Connections opened or accepted" }),
    numberColumn("out", "Out", value("bytes_out"), { format: formatBytes, stored: "bytes_out" }),
    numberColumn("in", "In", value("bytes_in"), { format: formatBytes, stored: "bytes_in" }),
    { key: "again", label: "Sent again", stored: "retransmits", title: "Share of segments sent again", value: (row) => retransmitShare(row.values), isDescending: true, isNumber: true, cell: againCell },
    ...latencyColumns("rtt").map((column) => ({ ...column, label: `RTT ${column.label}` })),
    { ...latencyColumns("connect")[1], key: "connect", label: "Connect p99" },
    numberColumn("refused", "Refused", value("refused"), { stored: "refused" }),
    numberColumn("resets", "Resets", value("resets"), { stored: "resets" }),
    numberColumn("drops", "Dropped", value("drops"), { stored: "drops", title: "Packets and connections for which a queue of the host was full" }),
  ];
}

/** @param {ObjectRow} row @param {() => void} choose */
function peerCell({ name, peer }, choose) {
  const { isOut, address } = peerOfObject(name);
  const known = peer ? [element("span", { class: "name" }, visibleText(peer.service)), peer.host ? ` on ${visibleText(peer.host)}` : " on the same host"] : [];
  const way = isOut ? "to" : "at";
  return nameCell(`${way} ${address}`, choose, ...(isOut ? known : ["accepted"]));
}

/** @param {ObjectRow} row */
function againCell({ values }) {
  const share = retransmitShare(values);
  if (share === null) return "–";
  const words = `${formatCount(values.retransmits ?? 0)} of ${formatCount(values.segments_out ?? 0)} segments`;
  if (share >= RETRANSMITS_GRAVE) return badge(formatLoss(share), "amber", words);
  return element("span", { class: share > 0 ? "" : "is-quiet", title: words }, formatLoss(share));
}
