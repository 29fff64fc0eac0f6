// SPDX-License-Identifier: Apache-2.0
/** The frame of every view: brand, views, range, theme. */

import { hasSides } from "../core/compare.js";
import { addressFromState, stateOfView } from "../core/route.js";
import { chooseTheme, nextChoice, themeChoice } from "../state/theme.js";
import { element, fill, icon } from "./dom.js";
import { makeRangePicker } from "./range-picker.js";
import { makeSavedMenu } from "./saved-menu.js";

/**
 * @typedef {import("../state/store.js").Store} Store
 * @typedef {import("../core/route.js").State} State
 */

/** @type {ReadonlyArray<{view: import("../core/route.js").ViewName, label: string}>} */
const VIEWS = [
  { view: "fleet", label: "Fleet" },
  { view: "compare", label: "Compare" },
  { view: "deploys", label: "Deploys" },
  { view: "events", label: "Events" },
  { view: "hosts", label: "Hosts" },
  { view: "symbols", label: "Symbols" },
];

/** Views that stand under another one. @type {Readonly<Partial<Record<import("../core/route.js").ViewName, import("../core/route.js").ViewName>>>} */
const PARENTS = { service: "fleet", heat: "fleet", deploy: "deploys" };

/**
 * @param {HTMLElement} place
 * @param {Store} store
 * @param {() => void} showAnew mounts the view on screen again
 * @returns {{update: (state: State) => void}}
 */
export function mountFrame(place, store, showAnew) {
  const brand = element("a", { class: "brand", "data-route": true }, element("span", { class: "brand-dot", "aria-hidden": "true" }), "emberwatch");
  const links = VIEWS.map(({ label }) => element("a", { class: "nav-link", "data-route": true }, label));
  const range = makeRangePicker(store);
  const search = fleetSearch(store);
  fill(
    place,
    brand,
    element("nav", { class: "nav", "aria-label": "Views" }, ...links),
    element("div", { class: "frame-tools" }, search, range.root, makeSavedMenu(store, showAnew).root, themeButton()),
  );
  return {
    update(state) {
      range.update(state);
      search.hidden = state.view === "search";
      // A comparison has two ranges of its own, a report the one it was made from.
      range.root.hidden = (state.view === "compare" && hasSides(state)) || state.view === "deploy";
      brand.href = addressFromState(stateOfView(state, "fleet"));
      links.forEach((link, at) => {
        const { view } = VIEWS[at];
        link.href = addressFromState(stateOfView(state, view));
        const isHere = view === (PARENTS[state.view] ?? state.view);
        if (isHere) link.setAttribute("aria-current", state.view === view ? "page" : "true");
        else link.removeAttribute("aria-current");
      });
      document.title = titleOf(state);
    },
  };
}

/** @param {State} state */
function titleOf(state) {
  const named = { fleet: "Fleet", compare: "Compare", deploys: "Deploys", deploy: "Deploy", events: "Events", heat: `${state.service} by host`, hosts: "Hosts", search: "Search", symbols: "Symbols", unknown: "Not found", service: state.service };
  return `${named[state.view]} · Emberwatch`;
}

/** The box that finds a function in the fleet, on every view but its own. @param {Store} store */
function fleetSearch(store) {
  const input = element("input", {
    class: "input fleet-search",
    type: "search",
    placeholder: "find a function in the fleet",
    "aria-label": "Find a function in the fleet",
    autocomplete: "off",
    spellcheck: "false",
    "data-fleet-search": true,
    onchange() {
      if (input.value === "") return;
      store.set({ ...stateOfView(store.get(), "search"), search: input.value });
      input.value = "";
    },
  });
  return input;
}

function themeButton() {
  const button = element("button", { class: "button is-icon theme-button", type: "button" });
  const show = () => {
    const choice = themeChoice();
    fill(button, icon(choice));
    button.title = `Theme: ${choice === "system" ? "as the system" : choice}`;
    button.setAttribute("aria-label", `${button.title}. Change it.`);
  };
  button.addEventListener("click", () => {
    chooseTheme(nextChoice(themeChoice()));
    show();
  });
  show();
  return button;
}
