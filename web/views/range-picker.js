// SPDX-License-Identifier: Apache-2.0
/** Choosing when: presets that end now, any start and end, and whether the page follows the time. */

import { PRESETS, followInterval_s, isRelative, normalRange, rangeProblem, relativeLabel, resolveRange } from "../core/range.js";
import { formatClock, formatDay, formatRange, formatZone } from "../core/units.js";
import { element, fill, icon } from "./dom.js";
import { makePopover } from "./popover.js";

/**
 * @typedef {import("../state/store.js").Store} Store
 * @typedef {import("../core/route.js").State} State
 */

const nowS = () => Date.now() / 1000;

/**
 * @param {Store} store
 * @returns {{root: HTMLElement, update: (state: State) => void}}
 */
export function makeRangePicker(store) {
  const label = element("span", { class: "range-label" });
  const button = element("button", { class: "button range-button", type: "button", "aria-label": "Range of time" }, label, icon("chevron"));
  const presets = element("div", { class: "range-presets", role: "group", "aria-label": "Ranges that end now" });
  const form = rangeForm((from, until) => choose(from, until));
  const panel = element("div", { class: "range-panel" }, presets, form.root);
  const popover = makePopover(button, panel, { onOpen: () => form.show(store.get()) });
  const live = element("button", { class: "button live-button", type: "button", onclick: () => store.set({ live: !store.get().live }) });
  const choose = (/** @type {string} */ from, /** @type {string} */ until) => {
    popover.close();
    store.set({ from, until, live: isRelative({ from, until }) });
  };
  fill(
    presets,
    ...PRESETS.map(({ from, label: words }) =>
      element("button", { class: "range-preset", type: "button", "data-from": from, onclick: () => choose(from, "now") }, words),
    ),
  );
  return {
    root: element("div", { class: "range-picker" }, popover.root, live),
    update(state) {
      label.textContent = rangeWords(state);
      for (const preset of presets.querySelectorAll("button")) {
        preset.setAttribute("aria-pressed", String(preset.dataset.from === state.from && state.until === "now"));
      }
      updateLive(live, state);
    },
  };
}

/** @param {State} state */
function rangeWords(state) {
  const { from_s, until_s } = resolveRange(state, nowS());
  const relative = relativeLabel(state);
  if (relative) return relative;
  return Number.isFinite(from_s + until_s) ? formatRange(from_s, until_s) : `${state.from} – ${state.until}`;
}

/**
 * @param {HTMLButtonElement} button
 * @param {State} state
 */
function updateLive(button, state) {
  const canFollow = isRelative(state);
  button.hidden = !canFollow;
  const isOn = canFollow && state.live;
  button.setAttribute("aria-pressed", String(isOn));
  button.title = isOn ? `Read again every ${followInterval_s(state)} s. Click to hold still.` : "Click to follow the time.";
  fill(button, element("span", { class: "live-dot", "aria-hidden": "true" }), element("span", { class: "live-words" }, isOn ? "Live" : "Paused"));
  button.setAttribute("aria-label", `Live: ${isOn ? "on" : "off"}`);
}

/**
 * Two fields for any range.
 * @param {(from: string, until: string) => void} apply
 */
export function rangeForm(apply) {
  const from = element("input", { class: "input", name: "from", autocomplete: "off", spellcheck: "false" });
  const until = element("input", { class: "input", name: "until", autocomplete: "off", spellcheck: "false" });
  const problem = element("p", { class: "field-problem", role: "alert" });
  const hint = element("p", { class: "field-hint" });
  const submit = (/** @type {Event} */ event) => {
    event.preventDefault();
    const typed = { from: from.value, until: until.value };
    const wrong = rangeProblem(typed, nowS());
    problem.textContent = wrong ?? "";
    if (wrong) return;
    const range = normalRange(typed, nowS());
    apply(range.from, range.until);
  };
  const root = element(
    "form",
    { class: "range-form", onsubmit: submit, novalidate: true },
    element("label", { class: "field" }, "From", from),
    element("label", { class: "field" }, "Until", until),
    hint,
    problem,
    element("button", { class: "button is-primary", type: "submit" }, "Show this range"),
  );
  const typedTime = (/** @type {string} */ text) =>
    /^\d/.test(text) ? `${formatDay(Number(text))} ${formatClock(Number(text))}` : text;
  return {
    root,
    show(/** @type {import("../core/range.js").Range} */ state) {
      from.value = typedTime(state.from);
      until.value = typedTime(state.until);
      problem.textContent = "";
      hint.textContent = `Like -2h and now, or 2026-05-04 14:00, in your time (${formatZone(nowS())}).`;
    },
  };
}
