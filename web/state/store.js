// SPDX-License-Identifier: Apache-2.0
/** The one state of the page. It is the address: what changes here changes there, and going back in history comes back here. */

import { addressFromState, stateFromAddress } from "../core/route.js";

/**
 * @typedef {import("../core/route.js").State} State
 * @typedef {(state: State, previous: State) => void} Listener
 * @typedef {{
 *   get: () => State, set: (patch: Partial<State>, how?: {replace?: boolean}) => void,
 *   subscribe: (listener: Listener) => () => void, start: () => void,
 * }} Store
 */

/**
 * @param {Window} host the window whose address and history are used
 * @returns {Store}
 */
export function makeStore(host) {
  const read = () => stateFromAddress(host.location.pathname, host.location.search);
  let state = read();
  /** @type {Set<Listener>} */
  const listeners = new Set();
  const tell = (/** @type {State} */ next) => {
    const previous = state;
    state = next;
    for (const listener of [...listeners]) listener(state, previous);
  };
  return {
    get: () => state,
    set(patch, { replace = false } = {}) {
      const next = { ...state, ...patch };
      const address = addressFromState(next);
      if (address === addressFromState(state) && next.view === state.view) return;
      host.history[replace ? "replaceState" : "pushState"](null, "", address);
      tell(next);
    },
    subscribe(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    start() {
      host.addEventListener("popstate", () => tell(read()));
    },
  };
}
