// SPDX-License-Identifier: Apache-2.0
/** What each side of a comparison selects and when: pickers for service, version and host, the selector itself, the range. */

import { rangeBefore, rangeLastWeek, relationWords, sideOf, sidePatch, spanOfSide } from "../core/compare.js";
import { sideWords } from "../core/diff-words.js";
import { labelsOfSelector, selectorText } from "../core/selector.js";
import { visibleText } from "../core/text.js";
import { formatRange, formatZone } from "../core/units.js";
import { element, fill, icon } from "./dom.js";
import { makeFilterMenu } from "./filter-menu.js";
import { makePopover } from "./popover.js";
import { rangeForm } from "./range-picker.js";

/**
 * @typedef {import("../core/compare.js").SideName} SideName
 * @typedef {import("../core/route.js").State} State
 * @typedef {import("../state/store.js").Store} Store
 * @typedef {import("../core/diff-tree.js").DiffSide} DiffSide
 */

const LABELS = /** @type {const} */ ([
  { label: "service", all: "All services" },
  { label: "version", all: "All versions" },
  { label: "host", all: "All hosts" },
]);

const nowS = () => Date.now() / 1000;

/**
 * @param {Store} store
 * @returns {{root: HTMLElement, update: (state: State) => void, show: (sides: {a: DiffSide, b: DiffSide}) => void}}
 */
export function makeCompareSides(store) {
  const a = makeSide(store, "a");
  const b = makeSide(store, "b");
  const relation = element("p", { class: "sides-relation is-quiet" });
  return {
    root: element("div", { class: "card sides", role: "group", "aria-label": "The two sides" }, a.root, b.root, relation),
    update(state) {
      a.update(state);
      b.update(state);
      relation.textContent = relationWords(spanOfSide(sideOf(state, "a"), nowS()), spanOfSide(sideOf(state, "b"), nowS()));
    },
    show(sides) {
      a.show(sides.a);
      b.show(sides.b);
    },
  };
}

/**
 * @param {Store} store
 * @param {SideName} name
 */
function makeSide(store, name) {
  const letter = name.toUpperCase();
  const side = () => sideOf(store.get(), name);
  const set = (/** @type {Partial<import("../core/compare.js").Side>} */ change) => store.set(sidePatch(name, change));
  const labels = () => labelsOfSelector(side().query) ?? { kind: "cpu", labels: {} };
  const menus = LABELS.map(({ label, all }) =>
    makeFilterMenu({
      label,
      all,
      many: label,
      // A filter offers what the other filters leave, not what it has itself chosen.
      selection: () => ({ ...side(), query: selectorText(labels().kind, { ...labels().labels, [label]: [] }) }),
      choose: (values) => set({ query: selectorText(labels().kind, { ...labels().labels, [label]: values }) }),
    }),
  );
  const raw = element("code", { class: "side-raw name" });
  const selector = selectorPopover(letter, side, (query) => set({ query }));
  const range = rangePopover(store, name, (from, until) => set({ from, until }));
  const rate = element("input", {
    class: "input side-rate",
    type: "number",
    min: "0",
    step: "any",
    placeholder: "–",
    "aria-label": `Requests a second of side ${letter}`,
    title: "Requests a second that this side served; with both, values are also said per request",
    onchange: () => store.set({ [`${name}Rate`]: Number(rate.value) > 0 ? rate.value : "" }),
  });
  const words = element("p", { class: "side-words is-quiet" });
  const root = element("section", { class: `side-card is-${name}`, "aria-label": `Side ${letter}` },
    element("span", { class: `side-letter is-${name}`, "aria-hidden": "true" }, letter),
    element("div", { class: "side-pickers" }, ...menus.map((menu) => menu.root), raw, selector.root, range.root, element("label", { class: "side-rate-label is-quiet" }, rate, "requests/s")), words);
  return {
    root,
    update(/** @type {State} */ state) {
      const { query } = sideOf(state, name);
      const known = labelsOfSelector(query);
      const isPlain = known !== null && Object.keys(known.labels).every((label) => LABELS.some((each) => each.label === label));
      menus.forEach((menu, at) => {
        menu.root.hidden = !isPlain;
        menu.update(known?.labels[LABELS[at].label] ?? []);
      });
      if (document.activeElement !== rate) rate.value = name === "a" ? state.aRate : state.bRate;
      raw.hidden = isPlain;
      raw.textContent = visibleText(query);
      range.update();
    },
    show(/** @type {DiffSide} */ answered) {
      words.textContent = sideWords(answered);
      words.classList.toggle("is-amber", answered.is_empty);
    },
  };
}

/**
 * The selector as text, for what lists of values cannot say.
 * @param {string} letter
 * @param {() => {query: string}} side
 * @param {(query: string) => void} apply
 */
function selectorPopover(letter, side, apply) {
  const input = element("input", { class: "input name", "aria-label": `Selector of side ${letter}`, autocomplete: "off", spellcheck: "false" });
  const submit = (/** @type {Event} */ event) => {
    event.preventDefault();
    popover.close();
    apply(input.value.trim() || "cpu{}");
  };
  const form = element("form", { class: "selector-form", onsubmit: submit },
    element("label", { class: "field" }, "Selector", input),
    element("p", { class: "field-hint" }, 'Like cpu{service="checkout",host!="web-1"}; =~ and !~ take regular expressions.'),
    element("button", { class: "button is-primary", type: "submit" }, "Take this selector"));
  const button = element("button", { class: "button is-icon", type: "button", title: "Write the selector", "aria-label": `Write the selector of side ${letter}` }, icon("filter"));
  const show = () => {
    input.value = side().query;
  };
  const popover = makePopover(button, element("div", { class: "selector-panel" }, form), { onOpen: show });
  return popover;
}

/**
 * @param {Store} store
 * @param {SideName} name
 * @param {(from: string, until: string) => void} apply
 */
function rangePopover(store, name, apply) {
  const other = name === "a" ? "b" : "a";
  const [letter, otherLetter] = [name.toUpperCase(), other.toUpperCase()];
  const label = element("span", { class: "range-label" });
  const button = element("button", { class: "button", type: "button", "aria-label": `Range of side ${letter}` }, label, icon("chevron"));
  const choose = (/** @type {string} */ from, /** @type {string} */ until) => {
    popover.close();
    apply(from, until);
  };
  const span = () => spanOfSide(sideOf(store.get(), other), nowS());
  const sameAsOther = () => {
    const { from, until } = sideOf(store.get(), other);
    return { from, until };
  };
  const choices = /** @type {Array<[string, () => import("../core/range.js").Range]>} */ ([
    [`Right before ${otherLetter}`, () => rangeBefore(span())],
    [`A week before ${otherLetter}`, () => rangeLastWeek(span())],
    [`The same minutes as ${otherLetter}`, sameAsOther],
  ]);
  const presets = element("div", { class: "range-presets", role: "group", "aria-label": `From the range of ${otherLetter}` },
    ...choices.map(([words, range]) => {
      const press = () => {
        const { from, until } = range();
        choose(from, until);
      };
      return element("button", { class: "range-preset", type: "button", onclick: press }, words);
    }));
  const form = rangeForm(choose);
  const panel = element("div", { class: "range-panel" }, presets, form.root);
  const popover = makePopover(button, panel, { onOpen: () => form.show(sideOf(store.get(), name)) });
  return {
    root: popover.root,
    update() {
      const side = sideOf(store.get(), name);
      const { from_s, until_s } = spanOfSide(side, nowS());
      const isKnown = Number.isFinite(from_s + until_s);
      fill(label, isKnown ? formatRange(from_s, until_s) : `${side.from} – ${side.until}`);
      button.title = isKnown ? `Times are ${formatZone(from_s)}` : "";
    },
  };
}
