// SPDX-License-Identifier: Apache-2.0
/** What the tabs have in common that show a table of objects (locks, calls): a heat map above, the graph of the chosen object beside. */

import { visibleText } from "../core/text.js";
import { hasChanged } from "./graph-panes.js";

const TABLE_KEYS = /** @type {const} */ (["from", "until", "hosts", "versions"]);

/**
 * Loads the parts, and keeps them at what the address says.
 * @param {import("../state/store.js").Store} store
 * @param {{
 *   heat: ReturnType<typeof import("./latency-panel.js").makeLatencyPanel>,
 *   table: ReturnType<typeof import("./object-table.js").makeObjectTable>,
 *   body: ReturnType<typeof import("./graph-panes.js").makeGraphPanes>,
 *   showControls: (state: import("../core/route.js").State) => void,
 * }} parts
 * @returns {import("./fleet.js").View}
 */
export function startObjectView(store, { heat, table, body, showControls }) {
  showControls(store.get());
  heat.load();
  table.load();
  body.start();
  return {
    update(state, previous) {
      showControls(state);
      if (hasChanged(state, previous, [...TABLE_KEYS, "object"])) heat.load();
      if (hasChanged(state, previous, TABLE_KEYS)) table.load();
      else if (hasChanged(state, previous, ["object", "sort"])) table.show();
      body.update(state, previous);
    },
    refresh() {
      heat.load({ isQuiet: true });
      table.load({ isQuiet: true });
      body.refresh();
    },
    unmount() {
      heat.cancel();
      table.cancel();
      body.unmount();
    },
  };
}

/**
 * A title with what it is of.
 * @param {string} title
 * @param {string} object
 */
export function named(title, object) {
  return object === "" ? title : `${title}: ${visibleText(object)}`;
}
