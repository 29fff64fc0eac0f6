// SPDX-License-Identifier: Apache-2.0
/** Graphs of time that was waited: what is read, how it looks, what is said of it. */

import { frameWords, spokenFrame } from "../core/frame-words.js";
import { treeFromAnswer } from "../core/tree.js";
import { NS_PER_S, formatCoresBare, formatDuration, formatShare } from "../core/units.js";
import { WAIT_KINDS, colourWaits } from "../core/wait-colour.js";
import { waitColours } from "../draw/flame-colours.js";
import { element } from "./dom.js";
import { emptyGraphWords } from "./empty-graph.js";

/** @typedef {import("../core/tree.js").FlamegraphAnswer & {idle: {total: number, idle: number, share: number} | null}} WaitAnswer */

/** @type {Readonly<import("./flame-graph.js").Look>} */
const WAIT_LOOK = Object.freeze({ colours: waitColours, words: frameWords, spoken: spokenFrame, markOf: null, kinds: WAIT_KINDS, legendLabel: "What the colours mean" });

/**
 * @param {{title: string, waited: string, none: string, isOfWaits?: boolean}} words `waited` stands behind a time: "waited", "in calls";
 *   what is no wait is coloured by kind of code, as everywhere
 * @returns {import("./graph-panel.js").Source}
 */
export function waitSource({ title, waited, none, isOfWaits = true }) {
  return {
    endpoint: "flamegraph",
    title,
    look: isOfWaits ? WAIT_LOOK : undefined,
    pin: (answer) => ({ from: String(answer.from_s), until: String(answer.until_s) }),
    treeOf(answer, asked) {
      const tree = treeFromAnswer(answer, { hasThreads: asked.group !== "" });
      return isOfWaits ? colourWaits(tree) : tree;
    },
    rootLabel: (answer) => `all · ${formatDuration(answer.total)} ${waited} · ${formatCoresBare(answer.total / NS_PER_S / Math.max(answer.seconds, 1e-9))} threads`,
    summary(answer, state) {
      const share = answer.total > 0 ? answer.view_total / answer.total : 0;
      if (state.at === "") return `${formatDuration(answer.total)} ${waited}`;
      return `${formatDuration(answer.view_total)} ${waited}, ${formatShare(share)} of ${formatDuration(answer.total)}`;
    },
    emptyWords: (answer, store) => emptyWords(answer, store, none),
  };
}

/**
 * Why there is nothing: it may all be waiting for work, which is hidden.
 * @param {WaitAnswer} answer
 * @param {import("../state/store.js").Store} store
 * @param {string} none
 */
function emptyWords(answer, store, none) {
  const { waits, object, idle, column } = store.get();
  const offer = (/** @type {string} */ label, /** @type {() => void} */ run) => element("p", {}, element("button", { class: "button is-primary", type: "button", onclick: run }, label));
  if (answer.idle && answer.idle.idle > 0 && idle === "hide") {
    return [
      element("p", { class: "message-title" }, "All of it was waiting for work."),
      element("p", { class: "message-hint" }, `${formatDuration(answer.idle.idle)} of threads that had nothing to do are hidden.`),
      offer("Show waiting for work", () => store.set({ idle: "show", at: "" })),
    ];
  }
  if (column !== "") {
    return [element("p", { class: "message-title" }, "No waits here were uninterruptible."), offer("Show all waits", () => store.set({ column: "", at: "" }))];
  }
  if (waits.length > 0 || object !== "") {
    return [element("p", { class: "message-title" }, none), offer("Show all", () => store.set({ waits: [], object: "", at: "" }))];
  }
  const [, , ...help] = emptyGraphWords(answer, store);
  return [element("p", { class: "message-title" }, none), ...help];
}

