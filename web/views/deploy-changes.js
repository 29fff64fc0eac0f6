// SPDX-License-Identifier: Apache-2.0
/** The functions a deploy changed, largest first, each with its evidence: interval, shares, CPU a host or request, spread. */

import { comparisonOfDeploy } from "../core/compare.js";
import { formatPoints, intervalWords, stateOfChange, stateWords } from "../core/diff-words.js";
import { addressFromState, stateOfComparison } from "../core/route.js";
import { countOf, visibleText } from "../core/text.js";
import { formatCount, formatShare } from "../core/units.js";
import { makeDataTable } from "./data-table.js";
import { formatCpu } from "./deploy-cpu.js";
import { element, fill } from "./dom.js";
import { errorBar, spreadBars } from "./error-bar.js";

/**
 * @typedef {import("../net/api.js").DeployAnswer} DeployAnswer
 * @typedef {import("../net/api.js").ReportRow} ReportRow
 */

/**
 * @param {import("../state/store.js").Store} store
 * @returns {{root: HTMLElement, show: (answer: DeployAnswer) => void}}
 */
export function makeChangesCard(store) {
  /** What all rows share: the end of their scale, the unit, the deploy they are of. */
  const common = { most: 1, unit: "cores", measure: "", deploy: /** @type {DeployAnswer["deploy"] | null} */ (null) };
  const columns = changeColumns(common, store);
  const table = makeDataTable({ caption: "Functions by change", columns, onSort: () => {}, className: "report-table is-cards", isSortedAlready: true });
  const note = element("p", { class: "table-note" });
  const root = element("section", { class: "card", "aria-label": "Largest changes" }, element("div", { class: "card-head" }, element("h2", {}, "Largest changes")), table.root, note);
  return {
    root,
    show({ deploy, report }) {
      root.hidden = report === null;
      if (!report) return;
      const { rows, functions } = report;
      common.most = Math.max(1e-6, ...rows.map((row) => Math.max(Math.abs(row.low), Math.abs(row.high))));
      common.unit = report.cpu.unit;
      common.measure = report.cpu.measure;
      common.deploy = deploy;
      table.root.hidden = rows.length === 0;
      table.show(rows, "");
      fill(note, noteWords(rows.length, functions));
    },
  };
}

/**
 * @param {number} shown
 * @param {{reported: number, explained: number, compared: number}} functions
 */
function noteWords(shown, { reported, explained, compared }) {
  if (reported === 0) return `Of ${countOf(compared, "function")}, none changed beyond noise.`;
  const rest = reported > shown ? `The ${shown} largest of ${formatCount(reported)}. ` : "";
  const also = explained > 0 ? ` ${countOf(explained, "other")} changed along with ${reported === 1 ? "it" : "them"}: callers, what they call, and what has more room now.` : "";
  return `${rest}Compared were ${countOf(compared, "function")}.${also}`;
}

/**
 * @param {{most: number, unit: string, measure: string, deploy: DeployAnswer["deploy"] | null}} common
 * @param {import("../state/store.js").Store} store
 * @returns {import("./data-table.js").Column<ReportRow>[]}
 */
function changeColumns(common, store) {
  const stateOf = (/** @type {ReportRow} */ row) => stateOfChange({ change: row.change, low: row.low, high: row.high, isNoise: false, aTotal: row.a_total, bTotal: row.b_total });
  const link = (/** @type {ReportRow} */ row) => {
    if (!common.deploy) return "";
    const compared = stateOfComparison(store.get(), { ...comparisonOfDeploy(common.deploy), shape: row.state === "vanished" ? "a" : "b" });
    return addressFromState({ ...compared, search: row.name });
  };
  return [
    {
      key: "name", label: "Function", value: (row) => row.name, isFixed: true,
      cell: (row) => [
        element("a", { class: "function-name name", href: link(row), "data-route": true, title: `${visibleText(row.name)}\nFind it in the comparison` }, visibleText(row.name)),
        element("span", { class: "function-binary" }, explainsWords(row, stateWords(stateOf(row)).replace(" in B", ""))),
      ],
    },
    {
      key: "change", label: "Change", title: "In points of the service's CPU", value: (row) => row.change, isFixed: true, isNumber: true,
      cell: (row) => element("span", { class: `change-number is-${stateOf(row)}` }, formatPoints(row.change)),
    },
    {
      key: "interval", label: "95 % interval", value: () => null, isFixed: true,
      cell: (row) => element("span", { title: `${intervalWords(row.low, row.high)} points` }, errorBar({ ...row, isNoise: false }, common.most)),
    },
    { key: "share", label: "Share", title: "Of the service's CPU, with what it calls", value: () => null, isFixed: true, isNumber: true, cell: (row) => `${formatShare(row.a_share)} → ${formatShare(row.b_share)}` },
    { key: "per", get label() { return common.measure; }, value: () => null, isFixed: true, isNumber: true, cell: (row) => `${formatCpu(row.a_per, common.unit)} → ${formatCpu(row.b_per, common.unit)}` },
    {
      key: "bars", label: "Before and after", value: () => null, isFixed: true,
      cell: (row) => spreadBars(row.a_bars, row.b_bars, `Its share in ${row.a_bars.length} parts before and ${row.b_bars.length} after (hosts, or stretches of time)`),
    },
  ];
}

/** @param {ReportRow} row @param {string} state */
function explainsWords({ explains, explains_total }, state) {
  if (explains_total === 0) return state;
  const more = explains_total > 2 ? ` and ${explains_total - 2} more` : "";
  return `${state}; explains ${explains.slice(0, 2).map(visibleText).join(", ")}${more}`;
}
