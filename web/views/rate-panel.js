// SPDX-License-Identifier: Apache-2.0
/** Columns over time in a card, stacked, read together by its owner. */

import { slotAt } from "../core/scale.js";
import { formatClock } from "../core/units.js";
import { paintLayers } from "../draw/layers-painter.js";
import { element, fill } from "./dom.js";
import { makeTimeCanvas } from "./time-canvas.js";

/** @typedef {{key: string, label: string, values: Array<number | null>}} RateLayer `key` names its colour, --spent-KEY */

const HEIGHT_PX = 120;

/**
 * @param {{title: string, note: string, signal: AbortSignal, format: (value: number) => string, label: (tick: number) => string,
 *   threshold?: number, base?: number,
 *   choose: (range: import("../core/range.js").Range) => void, back: () => void}} look
 */
export function makeRatePanel({ title, note, signal, format, label, threshold, base, choose, back }) {
  const legend = element("ul", { class: "legend" });
  const chart = makeTimeCanvas({ label: title, height_px: HEIGHT_PX, signal, choose, back, paint: paintLayers, numbersAt });
  const root = element("section", { class: "card panel rate-panel", "aria-label": title },
    element("div", { class: "card-head" }, element("h2", {}, title), element("p", { class: "is-quiet card-note" }, note)), element("div", { class: "panel-picture" }, chart.root, legend));
  return {
    root,
    /** @param {import("../core/kinds.js").ColumnsAnswer} answer @param {RateLayer[]} layers */
    show(answer, layers) {
      fill(legend, ...layers.map(({ key, label }) => {
        const swatch = element("span", { class: "swatch" });
        swatch.style.background = `var(--spent-${key})`;
        return element("li", {}, swatch, label);
      }));
      chart.show({ ...answer, layers, label, threshold, base, format });
    },
  };
}

/**
 * @param {import("../draw/layers-painter.js").Layers & {format: (value: number) => string}} shown
 * @param {number} cursor_s
 */
function numbersAt({ times_s, step_s, layers, format }, cursor_s) {
  const slot = slotAt(times_s, step_s, cursor_s);
  const known = slot < 0 ? [] : layers.filter(({ values }) => values[slot] !== null);
  if (known.length === 0) return `${formatClock(cursor_s)}  no data`;
  return [formatClock(times_s[slot]), ...known.map(({ label, values }) => `${label} ${format(values[slot] ?? 0)}`)].join("  ");
}
