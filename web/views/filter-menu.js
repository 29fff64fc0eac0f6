// SPDX-License-Identifier: Apache-2.0
/** A filter by the values of one label: a list with check boxes, the heaviest first, and a field to find one. */

import { countOf, visibleText } from "../core/text.js";
import { formatShare } from "../core/units.js";
import { getJson } from "../net/api.js";
import { element, fill, icon } from "./dom.js";
import { makePopover } from "./popover.js";

/**
 * @typedef {{query: string, from: string, until: string}} Selection
 * @typedef {{value: string, cpu_ns: number}} LabelValue
 */

const SHOWN_AT_MOST = 200;

/**
 * @param {{label: string, all: string, many: string, selection: () => Selection, choose: (values: string[]) => void}} options
 * @returns {{root: HTMLElement, update: (chosen: readonly string[]) => void}}
 */
export function makeFilterMenu({ label, all, many, selection, choose }) {
  const words = element("span", { class: "filter-words name" });
  const button = element("button", { class: "button", type: "button", "aria-label": `Filter by ${label}` }, words, icon("chevron"));
  const find = element("input", { class: "input", type: "search", placeholder: `Find a ${label}`, "aria-label": `Find a ${label}`, oninput: () => list() });
  const options = element("div", { class: "filter-options", role: "group", "aria-label": `${label}s` });
  const clear = element("button", { class: "button is-small", type: "button", onclick: () => set([]) }, all);
  const panel = element("div", { class: "filter-panel" }, find, options, clear);
  /** @type {LabelValue[]} */
  let values = [];
  /** @type {readonly string[]} */
  let chosen = [];

  const set = (/** @type {string[]} */ next) => {
    chosen = next;
    choose(next);
    list();
  };
  const list = () => {
    const wanted = find.value.toLowerCase();
    const total = values.reduce((sum, each) => sum + each.cpu_ns, 0);
    const shown = values.filter(({ value }) => value.toLowerCase().includes(wanted)).slice(0, SHOWN_AT_MOST);
    fill(
      options,
      ...shown.map(({ value, cpu_ns }) => {
        const box = element("input", { type: "checkbox", checked: chosen.includes(value) });
        box.addEventListener("change", () => set(box.checked ? [...chosen, value] : chosen.filter((each) => each !== value)));
        const share = total > 0 ? formatShare(cpu_ns / total) : "";
        return element("label", { class: "filter-option" }, box, element("span", { class: "name" }, visibleText(value) || "(none)"), element("span", { class: "is-quiet" }, share));
      }),
      shown.length === 0 && element("p", { class: "is-quiet" }, "None in this range."),
    );
    clear.hidden = chosen.length === 0;
  };
  const open = async () => {
    fill(options, element("p", { class: "is-quiet" }, "Reading …"));
    try {
      const answer = await getJson(`labels/${label}/values`, selection());
      values = answer.values;
      list();
      if (matchMedia("(hover: hover)").matches) find.focus();
    } catch (error) {
      fill(options, element("p", { class: "is-quiet", role: "alert" }, error instanceof Error ? error.message : String(error)));
    }
  };
  const popover = makePopover(button, panel, { onOpen: open });
  return {
    root: popover.root,
    update(next) {
      chosen = next;
      const chosenWords = chosen.length === 1 ? visibleText(chosen[0]) : countOf(chosen.length, many);
      words.textContent = chosen.length === 0 ? all : chosenWords;
      button.classList.toggle("is-on", chosen.length > 0);
    },
  };
}
