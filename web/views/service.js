// SPDX-License-Identifier: Apache-2.0
/** One service on CPU: how much, when, where, why. Timeline, what the data is worth, flame graph, table, details. */

import { timelineFromSeries } from "../draw/timeline-painter.js";
import { getJson } from "../net/api.js";
import { element, fill } from "./dom.js";
import { hasChanged, makeGraphPanes } from "./graph-panes.js";
import { makeLoader } from "./loader.js";
import { makeLossStrip } from "./loss-strip.js";
import { makeOddHosts } from "./odd-hosts.js";
import { brushed, makeServiceHead, selectionOf, unbrushed } from "./service-head.js";
import { makeSecondPanel } from "./second-panel.js";
import { makeTimeline } from "./timeline.js";

/**
 * @typedef {import("../core/route.js").State} State
 * @typedef {import("./fleet.js").Context} Context
 * @typedef {import("./fleet.js").View} View
 */

const SELECTION_KEYS = /** @type {const} */ (["from", "until", "hosts", "versions"]);

/**
 * @param {HTMLElement} place
 * @param {Context} context
 * @returns {View}
 */
export function mountService(place, { store, signal }) {
  const selection = () => selectionOf(store.get());
  const strip = makeLossStrip();
  const body = makeGraphPanes({ store, signal }, { selection, selectionKeys: SELECTION_KEYS, onAnswer: (answer) => strip.show(answer.quality) });
  const time = { choose: (/** @type {import("../core/range.js").Range} */ range) => brushed(store, range), back: () => unbrushed(store) };
  const timeline = makeTimeline({ ...time, signal });
  const panel = element("section", { class: "card panel timeline-panel", "aria-label": "CPU over time" },
    element("div", { class: "card-head" }, element("h2", {}, "CPU over time"), element("p", { class: "is-quiet card-note" }, "cores · drag to choose a range, double click to go back")),
    element("div", { class: "panel-picture" }, timeline.root), strip.root);
  const loader = makeLoader(panel, { retry: () => loadTimeline(false) });
  const loadTimeline = async (/** @type {boolean} */ isQuiet) => {
    const { service, from, until } = store.get();
    const read = (/** @type {AbortSignal} */ stop) => Promise.all([getJson("series", selection(), stop), getJson("deploys", { service, from, until }, stop)]);
    const answers = await loader.run("Reading the timeline", read, { isQuiet });
    if (!answers) return;
    timeline.show(timelineFromSeries(answers[0]));
    timeline.markers.show(answers[1].deploys, store.get());
  };
  const second = makeSecondPanel({ store, signal }, { parameters: () => ({ ...selectionOf({ ...store.get(), tab: "time" }) }), ...time, isPlain: true });
  const odd = makeOddHosts(store);
  const head = makeServiceHead({ store, signal }, { selection, graph: body.graph });
  fill(place, head.root, panel, second.root, odd.root, body.toolbar.root, body.panes, body.dialog);
  head.update(store.get());
  loadTimeline(false);
  second.load();
  body.start();
  return {
    update(state, previous) {
      head.update(state);
      if (hasChanged(state, previous, SELECTION_KEYS)) {
        loadTimeline(false);
        second.load();
        odd.load();
      } else second.show();
      body.update(state, previous);
    },
    refresh() {
      loadTimeline(true);
      second.load({ isQuiet: true });
      odd.load({ isQuiet: true });
      body.refresh();
    },
    unmount() {
      body.unmount();
      loader.cancel();
      second.cancel();
      odd.cancel();
    },
  };
}
