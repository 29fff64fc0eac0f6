// SPDX-License-Identifier: Apache-2.0
/** A service's page: the view of the kind that its address names. */

import { tabOfKind } from "../core/kinds.js";
import { mountCalls } from "./calls.js";
import { mountLocks } from "./locks.js";
import { mountService } from "./service.js";
import { mountTcp } from "./tcp.js";
import { mountWaiting } from "./waiting.js";

/**
 * @typedef {import("./fleet.js").Context} Context
 * @typedef {import("./fleet.js").View} View
 */

/** @type {Readonly<Record<string, (place: HTMLElement, context: Context) => View>>} */
const MOUNTS = Object.freeze({ cpu: mountService, offcpu: mountWaiting, lock: mountLocks, syscall: mountCalls, tcp: mountTcp });

/**
 * @param {HTMLElement} place
 * @param {Context} context
 * @returns {View}
 */
export function mountServiceTabs(place, { store, signal }) {
  let control = new AbortController();
  let shown = tabOfKind(store.get().tab);
  const mount = () => {
    control = new AbortController();
    return MOUNTS[shown](place, { store, signal: AbortSignal.any([signal, control.signal]) });
  };
  let view = mount();
  const leave = () => {
    view.unmount();
    control.abort();
  };
  return {
    update(state, previous) {
      const wanted = tabOfKind(state.tab);
      if (wanted === shown) return view.update(state, previous);
      const isFromTabs = document.activeElement?.getAttribute("role") === "tab";
      leave();
      shown = wanted;
      view = mount();
      // Who came by the keyboard goes on from the tab that was pressed.
      if (isFromTabs) document.getElementById(`tab-${shown}`)?.focus();
      return undefined;
    },
    refresh: () => view.refresh(),
    unmount: leave,
  };
}
