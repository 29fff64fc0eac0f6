// SPDX-License-Identifier: Apache-2.0
/** Where the second went: the threads' time over the range as one bar, and over time as stacked ones. Each part leads to its graph. */

import { SPENT, idleShareOf, layersOf, seenShareOf, stateOfSpent } from "../core/kinds.js";
import { absoluteRange } from "../core/range.js";
import { slotAt } from "../core/scale.js";
import { formatClock, formatCoresBare, formatDuration, formatShare } from "../core/units.js";
import { layerAt, paintLayers, sumsOf } from "../draw/layers-painter.js";
import { getJson } from "../net/api.js";
import { element, fill } from "./dom.js";
import { makeLoader } from "./loader.js";
import { makeTimeCanvas } from "./time-canvas.js";

/**
 * @typedef {import("../core/kinds.js").ColumnsAnswer} ColumnsAnswer
 * @typedef {import("../core/kinds.js").Layer} SpentLayer
 * @typedef {import("../core/route.js").State} State
 */

const HEIGHT_PX = 148;
/** Below this share of switches seen it is said that the rest is estimated. */
const WHOLLY_SEEN = 0.995;
/** @type {Readonly<ColumnsAnswer>} */
const NOTHING = Object.freeze({ kind: "time", from_s: 0, until_s: 1, step_s: 1, times_s: [], columns: [] });

/**
 * @param {import("./fleet.js").Context} context
 * @param {{
 *   parameters: () => import("../net/api.js").Parameters, choose: (range: import("../core/range.js").Range, more?: Partial<State>) => void, back: () => void,
 *   isPlain?: boolean, onShown?: (answer: ColumnsAnswer) => void,
 * }} asked with `isPlain` there is the bar alone, and nothing at all without data
 */
export function makeSecondPanel({ store, signal }, { parameters, choose, back, isPlain = false, onShown = () => {} }) {
  const chip = element("button", { class: "button is-small chip", type: "button", onclick: () => store.set({ idle: store.get().idle === "hide" ? "show" : "hide", at: "" }) });
  const bar = element("div", { class: "second-bar", "aria-hidden": "true" });
  const parts = element("ul", { class: "second-parts", "aria-label": "Where the threads' time went" });
  const press = (/** @type {import("../draw/layers-painter.js").Layers} */ layers, /** @type {number} */ cursor_s, /** @type {import("./time-canvas.js").Scene} */ scene) => {
    const spent = SPENT.find(({ key }) => key === layerAt(layers, scene));
    const from_s = layers.times_s[slotAt(layers.times_s, layers.step_s, cursor_s)];
    if (!spent) return;
    choose(absoluteRange(from_s, Math.min(from_s + layers.step_s, layers.until_s)), stateOfSpent(spent));
  };
  const chart = makeTimeCanvas({ label: "Threads' time over time", height_px: HEIGHT_PX, signal, choose, back, press, paint: paintLayers, numbersAt });
  const note = element("p", { class: "is-quiet card-note" });
  const picture = element("div", { class: "panel-picture" }, ...(isPlain ? [] : [chart.root]), bar, parts);
  const root = element("section", { class: `card panel second-panel${isPlain ? " is-plain" : ""}`, "aria-label": "Where the second went", hidden: isPlain },
    element("div", { class: "card-head" }, element("h2", {}, "Where the second went"), note, chip), picture);
  const loader = makeLoader(root, { retry: () => load() });
  /** @type {ColumnsAnswer | null} */
  let shown = null;
  const show = () => {
    if (!shown) return;
    const isIdleShown = store.get().idle !== "hide";
    const layers = layersOf(shown, { isIdleShown });
    const idle = idleShareOf(shown);
    chip.hidden = idle === 0;
    chip.setAttribute("aria-pressed", String(isIdleShown));
    chip.textContent = `Waiting for work ${isIdleShown ? "shown" : "hidden"}: ${formatShare(idle)}`;
    const seen = seenShareOf(shown);
    note.textContent = seen < WHOLLY_SEEN ? `thread-seconds per second, estimated from ${formatShare(seen)}` : "thread-seconds per second";
    note.title = seen < WHOLLY_SEEN ? "To spare hosts, threads were watched for a part of the time; what was seen stands for all." : "";
    const covered_s = coveredSeconds(shown);
    fill(bar, ...segmentsOf(layers, store));
    fill(parts, ...partsOf(layers, store, covered_s));
    if (!isPlain) chart.show({ ...shown, layers: layers.map(({ spent, rates }) => ({ key: spent.key, label: spent.label, values: rates })) });
  };
  const load = async ({ isQuiet = false } = {}) => {
    const read = async (/** @type {AbortSignal} */ stop) => {
      const asked = parameters();
      // A server that never stored the kind does not know it; that is no failure worth a word.
      const { kinds } = await getJson("kinds", asked, stop);
      const isKnown = kinds.some((/** @type {{kind: string, has_data: boolean}} */ each) => each.kind === "time" && each.has_data);
      return isKnown ? getJson("columns", asked, stop) : NOTHING;
    };
    const answer = await loader.run("Reading where the time went", read, { isQuiet: isQuiet || isPlain });
    if (!answer) return;
    shown = answer;
    const has = layersOf(answer, { isIdleShown: true }).length > 0;
    root.hidden = isPlain && !has;
    picture.hidden = !has;
    chip.hidden = !has;
    if (has) show();
    else if (!isPlain) loader.say(element("p", { class: "message-title" }, "Where the threads' time went is not known in this range."), element("p", { class: "message-hint" }, "The agents of these hosts do not send the kind time."));
    onShown(answer);
  };
  return { root, load, show, cancel: () => loader.cancel() };
}

/** Seconds of the slots with data. @param {ColumnsAnswer} answer */
function coveredSeconds({ columns, times_s, step_s, until_s }) {
  const [first] = columns;
  return times_s.reduce((sum, time_s, at) => sum + (first?.values[at] === null ? 0 : Math.min(step_s, until_s - time_s)), 0);
}

/** @param {SpentLayer[]} layers */
const totalOf = (layers) => layers.reduce((sum, { total_ns }) => sum + total_ns, 0);

/**
 * @param {SpentLayer[]} layers
 * @param {import("../state/store.js").Store} store
 */
function segmentsOf(layers, store) {
  const total = totalOf(layers);
  return layers.map(({ spent, total_ns }) => {
    const words = `${spent.label}: ${formatShare(total_ns / total)}, ${spent.words}`;
    const segment = element("button", { class: "second-segment", type: "button", tabindex: "-1", title: words, onclick: () => store.set(stateOfSpent(spent)) });
    segment.style.flexGrow = String(total_ns / total);
    segment.style.background = `var(--spent-${spent.key})`;
    return segment;
  });
}

/**
 * @param {SpentLayer[]} layers
 * @param {import("../state/store.js").Store} store
 * @param {number} covered_s
 */
function partsOf(layers, store, covered_s) {
  const total = totalOf(layers);
  const { tab, waits } = store.get();
  const isChosen = (/** @type {string} */ key) => (key === "cpu" && tab === "cpu") || (key === "runnable" && tab === "runqueue") || (tab === "offcpu" && waits.includes(key));
  return layers.map(({ spent, total_ns }) => {
    const swatch = element("span", { class: "swatch" });
    swatch.style.background = `var(--spent-${spent.key})`;
    const rate = `${formatCoresBare(total_ns / 1e9 / Math.max(covered_s, 1e-9))} /s`;
    return element("li", {}, element("button",
      { class: "second-part", type: "button", title: `${formatDuration(total_ns)} ${spent.words}`, "aria-pressed": String(isChosen(spent.key)), onclick: () => store.set(stateOfSpent(spent)) },
      swatch, element("span", { class: "second-label" }, spent.label), element("span", { class: "second-share" }, formatShare(total_ns / total)), element("span", { class: "is-quiet" }, rate)));
  });
}

/**
 * The largest parts of the slot, and first the one that the pointer is on: a press opens its graph of that slot.
 * @param {import("../draw/layers-painter.js").Layers} shown
 * @param {number} cursor_s
 * @param {import("./time-canvas.js").Scene} scene
 */
function numbersAt(shown, cursor_s, scene) {
  const slot = slotAt(shown.times_s, shown.step_s, cursor_s);
  const sum = slot < 0 ? null : sumsOf(shown)[slot];
  if (sum === null) return `${formatClock(cursor_s)}  no data`;
  const pointed = layerAt(shown, scene);
  const largest = shown.layers.map(({ key, label, values }) => ({ label, value: values[slot] ?? 0, isPointed: key === pointed })).filter(({ value }) => value > 0)
    .sort((a, b) => Number(b.isPointed) - Number(a.isPointed) || b.value - a.value);
  const words = largest.slice(0, 4).map(({ label, value }) => `${label} ${formatCoresBare(value)}`);
  return [formatClock(shown.times_s[slot]), `${formatCoresBare(sum)} thread-s/s`, ...words].join("  ");
}
