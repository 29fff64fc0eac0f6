// SPDX-License-Identifier: Apache-2.0
/**
 * What a panel shows while it waits and when it fails: the old picture stays, dimmed, under a thin bar; after a second words say
 * what runs and it can be cancelled; an error says what failed and what to do, its details folded.
 */

import { ApiError, isCancelled } from "../net/api.js";
import { element, fill, icon } from "./dom.js";

const DIM_AFTER_MS = 150;
const WORDS_AFTER_MS = 1000;

/**
 * @typedef {{
 *   run: <T>(what: string, read: (signal: AbortSignal) => Promise<T>, how?: {isQuiet?: boolean}) => Promise<T | undefined>,
 *   say: (...children: import("./dom.js").Child[]) => void, clear: () => void, cancel: () => void, message: HTMLElement,
 * }} Loader `run` gives undefined when it failed (which is then on screen) or was overtaken by a later one
 */

/**
 * @param {HTMLElement} panel gets the class `is-loading`, and `is-blank` when the first reading failed; the message is put before
 *   its picture
 * @param {{retry: () => void}} actions
 * @returns {Loader}
 */
export function makeLoader(panel, { retry }) {
  const words = element("span", { class: "loading-words" });
  const cancelButton = element("button", { class: "button is-small", type: "button", onclick: () => cancel(true) }, "Cancel");
  const note = element("div", { class: "loading-note", role: "status", hidden: true }, words, cancelButton);
  const message = element("div", { class: "message", hidden: true });
  panel.prepend(element("div", { class: "loading-bar", "aria-hidden": "true" }), note);
  const picture = panel.querySelector(":scope > .panel-picture");
  if (picture) picture.before(message);
  else panel.prepend(message);
  /** @type {AbortController | null} */
  let running = null;
  /** @type {number[]} */
  let timers = [];
  let hasPicture = false;

  const settle = () => {
    for (const timer of timers) clearTimeout(timer);
    timers = [];
    running = null;
    panel.classList.remove("is-loading");
    panel.setAttribute("aria-busy", "false");
    note.hidden = true;
  };
  const cancel = (/** @type {boolean} */ isByReader) => {
    running?.abort();
    settle();
    if (isByReader) say(element("p", {}, "Cancelled. "), element("button", { class: "button", type: "button", onclick: retry }, "Read again"));
  };
  const say = (/** @type {import("./dom.js").Child[]} */ ...children) => {
    fill(message, ...children);
    message.hidden = false;
  };
  const clear = () => {
    message.hidden = true;
    fill(message);
  };
  const begin = (/** @type {string} */ what, /** @type {boolean} */ isQuiet) => {
    cancel(false);
    const control = new AbortController();
    running = control;
    panel.setAttribute("aria-busy", "true");
    const started = performance.now();
    const tellTime = () => {
      words.textContent = `${what} … ${Math.round((performance.now() - started) / 1000)} s`;
      note.hidden = false;
      if (running === control) timers.push(window.setTimeout(tellTime, 1000));
    };
    if (!isQuiet) timers.push(window.setTimeout(() => panel.classList.add("is-loading"), DIM_AFTER_MS));
    timers.push(window.setTimeout(tellTime, WORDS_AFTER_MS));
    return control;
  };
  return {
    message,
    say,
    clear,
    cancel: () => cancel(false),
    async run(what, read, { isQuiet = false } = {}) {
      const control = begin(what, isQuiet);
      try {
        const answer = await read(control.signal);
        if (running !== control) return undefined;
        settle();
        clear();
        hasPicture = true;
        panel.classList.remove("is-blank");
        return answer;
      } catch (error) {
        if (isCancelled(error) || running !== control) return undefined;
        settle();
        panel.classList.toggle("is-blank", !hasPicture);
        say(...errorWords(error, what, retry));
        return undefined;
      }
    },
  };
}

/**
 * @param {unknown} error
 * @param {string} what
 * @param {() => void} retry
 * @returns {Node[]}
 */
function errorWords(error, what, retry) {
  const known = error instanceof ApiError ? error : new ApiError(String(error));
  const facts = [
    `while: ${what}`,
    known.status ? `status: ${known.status}` : "",
    known.address ? `asked: ${known.address}` : "",
    known.position === null ? "" : `at character: ${known.position}`,
  ];
  return [
    element("p", { class: "message-title", role: "alert" }, icon("warning"), known.message),
    element("p", { class: "message-hint" }, known.hint),
    element("p", {}, element("button", { class: "button", type: "button", onclick: retry }, "Try again")),
    element("details", {}, element("summary", {}, "Details"), element("pre", {}, facts.filter(Boolean).join("\n"))),
  ];
}
