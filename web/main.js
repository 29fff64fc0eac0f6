// SPDX-License-Identifier: Apache-2.0
/** Wires the page: the frame, the view the address names, the clock that follows, and links that stay in the page. */

import { followInterval_s } from "./core/range.js";
import { stateFromAddress } from "./core/route.js";
import { makeStore } from "./state/store.js";
import { applyTheme, themeChoice, watchSystemTheme } from "./state/theme.js";
import { element, fill } from "./views/dom.js";
import { mountCompare } from "./views/compare.js";
import { mountDeploy } from "./views/deploy-report.js";
import { mountDeploys } from "./views/deploys.js";
import { mountEvents } from "./views/events.js";
import { mountFleet } from "./views/fleet.js";
import { mountFrame } from "./views/frame.js";
import { mountHeat } from "./views/heat.js";
import { mountHosts } from "./views/hosts.js";
import { mountSearch } from "./views/search.js";
import { mountServiceTabs } from "./views/service-tabs.js";
import { openShared, showBanner, showSharedProblem, tokenOfPath } from "./views/shared.js";
import { mountSymbols } from "./views/symbols.js";

/**
 * @typedef {import("./core/route.js").State} State
 * @typedef {import("./views/fleet.js").View} View
 * @typedef {import("./views/fleet.js").Context} Context
 */

const MOUNTS = /** @type {Record<State["view"], (place: HTMLElement, context: Context) => View>} */ ({
  fleet: mountFleet,
  service: mountServiceTabs,
  compare: mountCompare,
  deploys: mountDeploys,
  deploy: mountDeploy,
  events: mountEvents,
  heat: mountHeat,
  hosts: mountHosts,
  search: mountSearch,
  symbols: mountSymbols,
  unknown: mountUnknown,
});

/**
 * @param {HTMLElement} place
 * @returns {View}
 */
function mountUnknown(place) {
  const back = element("a", { class: "button", href: "/", "data-route": true }, "Go to the fleet");
  fill(place, element("div", { class: "message" }, element("h1", {}, "There is nothing at this address"), back));
  return { update() {}, refresh() {}, unmount() {} };
}

/**
 * @param {HTMLElement} place
 * @param {import("./state/store.js").Store} store
 * @returns {{view: View, leave: () => void}}
 */
function mountView(place, store) {
  const control = new AbortController();
  const view = MOUNTS[store.get().view](place, { store, signal: control.signal });
  const leave = () => {
    view.unmount();
    control.abort();
  };
  return { view, leave };
}

/** A shared view stands alone: no other view, no range, nothing that follows. @param {string} token */
async function startShared(token) {
  const place = /** @type {HTMLElement} */ (document.getElementById("view"));
  try {
    const { shared, store } = await openShared(token);
    showBanner(/** @type {HTMLElement} */ (document.getElementById("frame")), shared);
    document.body.classList.add("is-shared");
    const shown = mountView(place, store);
    store.subscribe((state, previous) => shown.view.update(state, previous));
  } catch (error) {
    showSharedProblem(place, error);
  }
  document.addEventListener("keydown", focusSearch);
}

function start() {
  applyTheme(themeChoice());
  watchSystemTheme();
  const token = tokenOfPath(location.pathname);
  if (token) {
    void startShared(token);
    return;
  }
  const store = makeStore(window);
  const place = /** @type {HTMLElement} */ (document.getElementById("view"));
  let shown = mountView(place, store);
  const showAnew = () => {
    shown.leave();
    shown = mountView(place, store);
  };
  const frame = mountFrame(/** @type {HTMLElement} */ (document.getElementById("frame")), store, showAnew);
  frame.update(store.get());
  store.subscribe((state, previous) => {
    frame.update(state);
    if (state.view === previous.view && state.service === previous.service && state.id === previous.id) {
      shown.view.update(state, previous);
      return;
    }
    showAnew();
    window.scrollTo(0, 0);
    place.focus({ preventScroll: true });
  });
  store.start();
  follow(store, () => shown.view.refresh());
  keepLinksInside(store);
  document.addEventListener("keydown", focusSearch);
}

/**
 * Read again while the range is followed and someone looks.
 * @param {import("./state/store.js").Store} store
 * @param {() => void} refresh
 */
function follow(store, refresh) {
  let latest_ms = performance.now();
  setInterval(() => {
    const state = store.get();
    const isDue = performance.now() - latest_ms >= followInterval_s(state) * 1000;
    if (!state.live || document.hidden || !isDue) return;
    latest_ms = performance.now();
    refresh();
  }, 1000);
  store.subscribe(() => {
    latest_ms = performance.now();
  });
}

/** @param {import("./state/store.js").Store} store */
function keepLinksInside(store) {
  document.addEventListener("click", (event) => {
    const link = event.target instanceof Element ? event.target.closest("a[data-route]") : null;
    const isPlain = event.button === 0 && !event.metaKey && !event.ctrlKey && !event.shiftKey && !event.altKey;
    if (!(link instanceof HTMLAnchorElement) || !isPlain) return;
    event.preventDefault();
    store.set(stateFromAddress(new URL(link.href).pathname, new URL(link.href).search));
  });
}

/** `/` goes to the view's search, from anywhere but a field. @param {KeyboardEvent} event */
function focusSearch(event) {
  const isTyping = event.target instanceof HTMLElement && event.target.closest("input, textarea, select");
  if (event.key !== "/" || isTyping || event.ctrlKey || event.metaKey) return;
  const search = document.querySelector("#view [data-search]") ?? document.querySelector("[data-fleet-search]");
  if (!(search instanceof HTMLInputElement)) return;
  event.preventDefault();
  search.focus();
  search.select();
}

start();
