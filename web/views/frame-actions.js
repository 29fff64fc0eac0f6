// SPDX-License-Identifier: Apache-2.0
/** What can be done with a frame that was chosen, by key and by button: the same on a graph and on a comparison. */

import { exactly, withFrames } from "../core/operators.js";

/** @typedef {import("../state/store.js").Store} Store */

/** @type {ReadonlyArray<{operator: import("../core/operators.js").FrameOperator, label: string}>} */
const FRAME_ACTIONS = [
  { operator: "focus", label: "Focus" },
  { operator: "ignore", label: "Ignore" },
  { operator: "callers", label: "Callers" },
  { operator: "callees", label: "What it calls" },
];

/**
 * Name of a node's function; "" of none, of the root and of trimmed frames.
 * @param {import("../core/tree.js").Tree | null} tree
 * @param {number} node
 */
export function nameOfNode(tree, node) {
  const at = tree && node >= 0 ? tree.functionOf[node] : -1;
  return tree && at >= 0 ? tree.functions[at].name : "";
}

/**
 * @param {Store} store
 * @param {string} name
 * @returns {import("./details.js").Action[]}
 */
export function frameActions(store, name) {
  return FRAME_ACTIONS.map(({ operator, label }) => ({ label, run: () => store.set(withFrames(operator, exactly(name))) }));
}

/**
 * Take a key of the graph that changes what is asked.
 * @param {Store} store
 * @param {string} key
 * @param {string} name of the frame that is chosen, "" of none
 * @returns {boolean} false when the key is not one of these
 */
export function takeFrameKey(store, key, name) {
  if (key === "f" || key === "c") {
    if (name) store.set(withFrames(key === "f" ? "focus" : "callers", exactly(name)));
  } else if (key === "t") store.set({ shown: store.get().shown === "table" ? "both" : "table" });
  else if (key === "i") store.set({ invert: !store.get().invert, at: "" });
  else return false;
  return true;
}
