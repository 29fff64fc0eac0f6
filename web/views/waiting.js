// SPDX-License-Identifier: Apache-2.0
/** A service's waits: where each second went, how long threads waited for a CPU, what they waited for, and who woke them. */

import { SPENT, idleShareOf, uninterruptibleShareOf, withheldWords } from "../core/kinds.js";
import { selectorText } from "../core/selector.js";
import { formatShare } from "../core/units.js";
import { getJson } from "../net/api.js";
import { element, fill, icon } from "./dom.js";
import { hasChanged, makeGraphPanes } from "./graph-panes.js";
import { makeLatencyPanel } from "./latency-panel.js";
import { makeLossStrip } from "./loss-strip.js";
import { makeSecondPanel } from "./second-panel.js";
import { brushed, makeServiceHead, selectionOf, unbrushed } from "./service-head.js";
import { waitSource } from "./wait-source.js";

/**
 * @typedef {import("../core/route.js").State} State
 * @typedef {import("./fleet.js").Context} Context
 * @typedef {import("./fleet.js").View} View
 */

const SELECTION_KEYS = /** @type {const} */ (["tab", "from", "until", "hosts", "versions", "waits", "idle", "column", "stacks"]);
const TIME_KEYS = /** @type {const} */ (["from", "until", "hosts", "versions"]);

const POOLS = "Four threads of a host or more that have one name, stand on one stack and are hardly ever woken. Share of the waits.";
const UNINTERRUPTIBLE = "Waits that no signal could have ended (state D), mostly for disks. Share of all waits, those for work too. Press to see them alone.";
const WITHHELD = "Throttled: CPU quotas of cgroups kept threads from running, added up over CPUs. Stolen: the hypervisor ran others while threads were on a CPU.";

/** @type {ReadonlyArray<{stacks: State["stacks"], label: string, title: string}>} */
const STACKS = [
  { stacks: "", label: "Who waits", title: "The stacks that waited" },
  { stacks: "both", label: "Off-wake", title: "The stack that waited, and mirrored below it who woke it" },
  { stacks: "second", label: "By waker", title: "Who ended the waits, by its own stack" },
];

/**
 * @param {HTMLElement} place
 * @param {Context} context
 * @returns {View}
 */
export function mountWaiting(place, context) {
  const { store, signal } = context;
  const time = { choose: (/** @type {import("../core/range.js").Range} */ range, /** @type {Partial<State>} */ more = {}) => brushed(store, range, more), back: () => unbrushed(store) };
  const of = (/** @type {string} */ kind) => () => {
    const { service, hosts, versions, from, until } = store.get();
    return { query: selectorText(kind, { service: [service], host: hosts, version: versions }), from, until };
  };
  const rows = () => selectionOf(store.get(), store.get().tab === "offcpu" ? { class: store.get().waits } : {});
  const selection = () => {
    const { tab, idle, column, stacks } = store.get();
    return { ...rows(), stacks, ...(tab === "offcpu" ? { idle, column } : { idle: "", column: "" }) };
  };
  const withheld = element("p", { class: "is-quiet card-note", title: WITHHELD });
  const second = makeSecondPanel(context, {
    parameters: of("time"),
    ...time,
    onShown(answer) {
      choices.sayIdle({ isSaid: idleShareOf(answer) > 0 });
      withheld.textContent = withheldWords(answer);
    },
  });
  const heat = makeLatencyPanel({ title: "Waiting for a CPU", what: "waits", signal, parameters: of("runqueue"), ...time, tools: [withheld], height_px: 216 });
  const strip = makeLossStrip("waits");
  const choices = makeChoices(store);
  const marks = makeMarks({ store, signal }, rows);
  const body = makeGraphPanes(context, {
    selection,
    selectionKeys: SELECTION_KEYS,
    onAnswer(answer) {
      strip.show(answer.quality);
      choices.sayIdle({ idle: answer.idle });
      marks.load();
    },
    source: waitSource({ title: "Waits", waited: "waited", none: "No waits in this range." }),
    tools: [choices.chips, marks.chip, choices.group],
  });
  const head = makeServiceHead(context, { selection: rows, graph: body.graph });
  const upper = element("div", { class: "charts" }, second.root, heat.root);
  fill(place, head.root, upper, element("section", { class: "card strip-card" }, strip.root), body.toolbar.root, body.panes, body.dialog);
  const showControls = (/** @type {State} */ state) => {
    head.update(state);
    choices.update(state);
    marks.show();
  };
  showControls(store.get());
  second.load();
  heat.load();
  body.start();
  return {
    update(state, previous) {
      showControls(state);
      if (hasChanged(state, previous, TIME_KEYS)) {
        second.load();
        heat.load();
      } else second.show();
      body.update(state, previous);
    },
    refresh() {
      second.load({ isQuiet: true });
      heat.load({ isQuiet: true });
      marks.load({ isAnew: true });
      body.refresh();
    },
    unmount() {
      second.cancel();
      heat.cancel();
      body.unmount();
    },
  };
}

/**
 * How much of the waits nothing could interrupt: a press shows these alone.
 * @param {Pick<Context, "store" | "signal">} context
 * @param {() => import("../net/api.js").Parameters} selection
 */
function makeMarks({ store, signal }, selection) {
  const toggle = () => store.set({ column: store.get().column === "" ? "uninterruptible_ns" : "", at: "" });
  const chip = element("button", { class: "button is-small chip", type: "button", hidden: true, title: UNINTERRUPTIBLE, onclick: toggle });
  let said = "", asks = 0, share = 0;
  const show = () => {
    const { tab, column } = store.get();
    chip.hidden = tab !== "offcpu" || (share === 0 && column === "");
    chip.setAttribute("aria-pressed", String(column !== ""));
    chip.textContent = `Uninterruptible: ${formatShare(share)}`;
  };
  return {
    chip,
    show,
    /** Read once for each selection, if not `isAnew`. A mark that cannot be read is none. */
    async load({ isAnew = false } = {}) {
      const asked = selection();
      const key = JSON.stringify(asked);
      if (store.get().tab !== "offcpu" || (said === key && !isAnew)) return;
      said = key;
      const ask = ++asks;
      const found = await getJson("columns", asked, signal).then(uninterruptibleShareOf, () => 0);
      if (ask !== asks) return;
      share = found;
      show();
    },
  };
}

/**
 * What of the waits is looked at: which class, and whose stacks.
 * @param {import("../state/store.js").Store} store
 */
function makeChoices(store) {
  const chips = element("div", { class: "chips" });
  const idleChip = element("button", { class: "button is-small chip", type: "button", hidden: true, onclick: () => store.set({ idle: store.get().idle === "hide" ? "show" : "hide", at: "" }) });
  /** What the chart of all time says is not said again: it knows of pools nothing. @type {{isSaid: boolean, idle: {total: number, idle: number, by: Record<string, number>} | null}} */
  const told = { isSaid: true, idle: null };
  const segments = STACKS.map(({ stacks, label, title }) =>
    element("button", { class: "button toggle", type: "button", title, onclick: () => store.set({ stacks, at: "" }) }, label));
  const group = element("div", { class: "segments", role: "group", "aria-label": "Whose stacks" }, ...segments);
  return {
    chips: element("div", { class: "chips" }, chips, idleChip),
    group,
    /** @param {Partial<typeof told>} news */
    sayIdle(news) {
      Object.assign(told, news);
      const isShown = store.get().idle !== "hide";
      const { total = 0, idle = 0, by = {} } = told.idle ?? {};
      const ns = told.isSaid ? by.alike ?? 0 : idle;
      idleChip.hidden = ns === 0;
      idleChip.setAttribute("aria-pressed", String(isShown));
      idleChip.title = told.isSaid ? POOLS : "";
      idleChip.textContent = `${told.isSaid ? "Idle pools" : "Waiting for work"} ${isShown ? "shown" : "hidden"}: ${formatShare(ns / Math.max(1, total))}`;
    },
    /** @param {State} state */
    update({ tab, waits, stacks }) {
      segments.forEach((segment, at) => segment.setAttribute("aria-pressed", String(STACKS[at].stacks === stacks)));
      const words = tab === "runqueue" ? ["Runnable"] : waits.map((wait) => SPENT.find(({ key }) => key === wait)?.label ?? wait);
      const drop = () => store.set({ tab: "offcpu", waits: [], at: "" });
      fill(chips, ...words.map((word) => element("button", { class: "button is-small chip is-on", type: "button", "aria-label": `All classes instead of ${word}`, onclick: drop }, word, icon("close"))));
    },
  };
}
