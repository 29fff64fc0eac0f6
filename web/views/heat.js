// SPDX-License-Identifier: Apache-2.0
/** Hosts by time: select one rectangle for a graph, two for a comparison. By pointer, and by keyboard. */

import { boxFromText, boxOfCells, mostOf, selectionOfBox, textOfBox } from "../core/heat.js";
import { MOST_BOXES, addressFromState, stateOfComparison, stateOfView } from "../core/route.js";
import { selectorText } from "../core/selector.js";
import { countOf, visibleText } from "../core/text.js";
import { formatClock, formatCores, formatRange } from "../core/units.js";
import { cellAt, heatPlotOf, paintHosts } from "../draw/heat-painter.js";
import { getJson } from "../net/api.js";
import { element, fill } from "./dom.js";
import { makeLoader } from "./loader.js";

/**
 * @typedef {import("../core/heat.js").HeatBox} HeatBox
 * @typedef {import("../core/heat.js").Cell} Cell
 * @typedef {import("../net/api.js").HostMapAnswer} HostMapAnswer
 * @typedef {import("../state/store.js").Store} Store
 * @typedef {import("./fleet.js").Context} Context
 * @typedef {import("./fleet.js").View} View
 */

const EDGE_PX = 16;
const STEPS = /** @type {Record<string, [number, number]>} */ ({ ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] });

/**
 * @param {HTMLElement} place
 * @param {Context} context
 * @returns {View}
 */
export function mountHeat(place, { store, signal }) {
  const map = new HeatMap(store);
  const actions = element("div", { class: "heat-actions" });
  const note = element("p", { class: "table-note", hidden: true });
  const legend = element("div", { class: "heat-legend is-quiet" }, "0", element("span", { class: "heat-ramp", "aria-hidden": "true" }), map.mostWords);
  const card = element("div", { class: "card panel-picture" },
    element("div", { class: "card-head" }, element("h2", {}, "CPU by host and time"), legend), map.root, actions, note);
  const panel = element("section", { class: "panel", "aria-label": "CPU by host and time" }, card);
  const loader = makeLoader(panel, { retry: () => load(false) });
  map.onActions = (parts) => fill(actions, ...parts);

  const load = async (/** @type {boolean} */ isQuiet) => {
    const { service, from, until } = store.get();
    const query = selectorText("cpu", { service: [service] });
    const answer = await loader.run("Reading the hosts", (read) => getJson("hostmap", { query, from, until }, read), { isQuiet });
    if (!answer) return;
    card.hidden = answer.hosts.length === 0;
    if (answer.hosts.length === 0) loader.say(element("p", { class: "message-title" }, "No host has data of this service in this range."));
    note.hidden = answer.hosts_total <= answer.hosts.length;
    note.textContent = `The ${answer.hosts.length} hosts with the most of ${answer.hosts_total}.`;
    map.show(answer);
  };
  fill(place, headOf(store), panel);
  const watch = new ResizeObserver(() => map.paint());
  watch.observe(map.root);
  signal.addEventListener("abort", () => watch.disconnect());
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => map.paint(), { signal });
  load(false);
  return {
    update(state, previous) {
      if (state.from !== previous.from || state.until !== previous.until) load(false);
      else map.paint();
    },
    refresh: () => load(true),
    unmount: () => loader.cancel(),
  };
}

/** @param {Store} store */
function headOf(store) {
  const state = store.get();
  const to = (/** @type {import("../core/route.js").State} */ next) => ({ href: addressFromState(next), "data-route": true });
  return element("div", { class: "view-head is-service" },
    element("div", { class: "title" },
      element("a", { class: "crumb", ...to(stateOfView(state, "fleet")) }, "Fleet"),
      element("span", { class: "crumb-mark", "aria-hidden": "true" }, "/"),
      element("a", { class: "crumb name", ...to(stateOfView(state, "service", state.service)) }, visibleText(state.service)),
      element("span", { class: "crumb-mark", "aria-hidden": "true" }, "/"),
      element("h1", {}, "Hosts by time")));
}

/** The canvas, what is selected on it, and what can be done with that. */
class HeatMap {
  /** @param {Store} store */
  constructor(store) {
    this.store = store;
    /** @type {HostMapAnswer | null} */
    this.answer = null;
    /** @type {Cell | null} */
    this.cursor = null;
    /** Where a selection began. @type {Cell | null} */
    this.anchor = null;
    /** @type {HeatBox | null} */
    this.drawn = null;
    /** @type {(parts: import("./dom.js").Child[]) => void} */
    this.onActions = () => {};
    this.mostWords = element("span", {}, "");
    this.said = element("p", { class: "heat-said is-quiet", "aria-live": "polite" });
    this.canvas = element("canvas", {
      class: "heat-canvas",
      tabindex: "0",
      role: "application",
      "aria-label": "Hosts by time. Arrows move, Shift and arrows select, Enter keeps the selection, Escape takes it back, G opens the graph, C compares.",
    });
    this.canvas.addEventListener("pointerdown", (event) => this.begin(event));
    this.canvas.addEventListener("pointermove", (event) => this.move(event));
    this.canvas.addEventListener("pointerup", () => this.keep());
    this.canvas.addEventListener("keydown", (event) => this.press(event));
    this.root = element("div", { class: "heat" }, this.canvas, this.said);
  }

  /** @param {HostMapAnswer} answer */
  show(answer) {
    this.answer = answer;
    this.mostWords.textContent = formatCores(mostOf(answer.values));
    this.paint();
  }

  get grid() {
    const { from_s, step_s, hosts, values } = /** @type {HostMapAnswer} */ (this.answer);
    return { from_s, step_s, hosts, slots: values[0]?.length ?? 0 };
  }

  /** Without the padding around it. */
  get width_px() {
    return this.root.clientWidth - 2 * EDGE_PX;
  }

  get boxes() {
    return this.store.get().boxes.map(boxFromText).filter((box) => box !== null);
  }

  paint() {
    if (!this.answer || this.answer.hosts.length === 0 || this.width_px <= 0) return;
    const kept = this.boxes;
    const boxes = this.drawn ? [...(kept.length < MOST_BOXES ? kept : []), this.drawn] : kept;
    paintHosts(this.canvas, { grid: this.grid, values: this.answer.values, most: mostOf(this.answer.values), boxes, cursor: this.cursor, width_px: this.width_px });
    this.canvas.dataset.hosts = String(this.answer.hosts.length);
    this.onActions(actionParts(this.store, kept, this.answer.hosts));
  }

  /** @param {PointerEvent} event */
  cellOf(event) {
    const box = this.canvas.getBoundingClientRect();
    return cellAt(this.grid, heatPlotOf(this.grid, this.width_px), event.clientX - box.left, event.clientY - box.top);
  }

  /** @param {PointerEvent} event */
  begin(event) {
    if (event.button !== 0 || !this.answer) return;
    this.canvas.setPointerCapture(event.pointerId);
    this.anchor = this.cursor = this.cellOf(event);
    this.drawn = boxOfCells(this.grid, this.anchor, this.anchor);
    this.paint();
  }

  /** @param {PointerEvent} event */
  move(event) {
    if (!this.answer) return;
    this.goTo(this.cellOf(event), this.anchor !== null);
  }

  /** @param {Cell} cell @param {boolean} isSelecting */
  goTo(cell, isSelecting) {
    if (isSelecting) this.anchor ??= this.cursor ?? cell;
    this.cursor = cell;
    if (isSelecting && this.anchor) this.drawn = boxOfCells(this.grid, this.anchor, cell);
    this.say(cell);
    this.paint();
  }

  /** @param {Cell} cell */
  say({ row, slot }) {
    const { hosts, values, from_s, step_s } = /** @type {HostMapAnswer} */ (this.answer);
    const value = values[row][slot];
    this.said.textContent = `${visibleText(hosts[row])} at ${formatClock(from_s + slot * step_s)}: ${value === null ? "not there" : formatCores(value)}`;
  }

  /** What was drawn becomes a part of the address: the first, or the second, or a new first. */
  keep() {
    const { drawn } = this;
    this.anchor = null;
    this.drawn = null;
    if (!drawn) return;
    const before = this.store.get().boxes;
    this.store.set({ boxes: [...(before.length < MOST_BOXES ? before : []), textOfBox(drawn)] });
    this.paint();
  }

  /** @param {KeyboardEvent} event */
  press(event) {
    if (!this.answer || this.answer.hosts.length === 0 || event.ctrlKey || event.metaKey || event.altKey) return;
    const step = STEPS[event.key];
    if (step) {
      const { slots, hosts } = this.grid;
      const from = this.cursor ?? { slot: 0, row: 0 };
      const slot = Math.max(0, Math.min(slots - 1, from.slot + step[0]));
      this.goTo({ slot, row: Math.max(0, Math.min(hosts.length - 1, from.row + step[1])) }, event.shiftKey);
    } else if (event.key === "Enter" || event.key === " ") {
      if (!this.drawn && this.cursor) this.drawn = boxOfCells(this.grid, this.cursor, this.cursor);
      this.keep();
    } else if (event.key === "Escape") {
      this.anchor = this.drawn = null;
      this.store.set({ boxes: [] });
      this.paint();
    } else if (event.key === "g" || event.key === "c") {
      document.querySelector(event.key === "g" ? "a.heat-graph" : "a.heat-compare")?.dispatchEvent(new MouseEvent("click", { bubbles: true, cancelable: true }));
    } else return;
    event.preventDefault();
  }
}

/**
 * @param {Store} store
 * @param {HeatBox[]} boxes
 * @param {readonly string[]} all
 */
function actionParts(store, boxes, all) {
  const state = store.get();
  if (boxes.length === 0) return [element("p", { class: "is-quiet" }, "Drag over hosts and minutes: one rectangle leads to a graph, two to a comparison.")];
  const words = boxes.map((box, at) => element("span", { class: "heat-box" },
    boxes.length > 1 && element("span", { class: `side-letter ${at ? "is-b" : ""}` }, "AB"[at]), `${countOf(box.hosts.length, "host")}, ${formatRange(box.from_s, box.until_s)}`));
  const clear = element("button", { class: "button", type: "button", onclick: () => store.set({ boxes: [] }) }, "Clear");
  const selections = boxes.map((box) => selectionOfBox(state.service, box, all));
  if (boxes.length === 1) {
    const [{ hosts, from, until }] = selections;
    const href = addressFromState({ ...stateOfView(state, "service", state.service), hosts, from, until, live: false });
    return [...words, element("a", { class: "button is-primary heat-graph", href, "data-route": true }, "Graph"), clear, element("span", { class: "is-quiet" }, "Select a second rectangle to compare.")];
  }
  const [a, b] = selections;
  const comparison = { a: a.query, aFrom: a.from, aUntil: a.until, b: b.query, bFrom: b.from, bUntil: b.until, shape: /** @type {"b"} */ ("b") };
  const href = addressFromState(stateOfComparison(state, comparison));
  return [...words, element("a", { class: "button is-primary heat-compare", href, "data-route": true }, "Compare A with B"), clear];
}
