// SPDX-License-Identifier: Apache-2.0
/** One binary of the symbol desk, over the page: what is known, the line that mends it, what became of each source. */

import { originWords, outcomeOf, qualityWords, whyOf } from "../core/symbol-words.js";
import { visibleText } from "../core/text.js";
import { formatAge, formatClock, formatDay, formatDuration } from "../core/units.js";
import { copyText, element, fill, icon } from "./dom.js";
import { badge, commandBox } from "./parts.js";

/**
 * @typedef {import("../core/symbol-words.js").DeskRow} DeskRow
 * @typedef {import("../core/symbol-words.js").SourceRow} SourceRow
 */

/**
 * @param {{retry: (row: DeskRow) => Promise<void>}} actions
 * @returns {{root: HTMLDialogElement, open: (row: DeskRow, now_s: number) => void, update: (rows: readonly DeskRow[], now_s: number) => void}}
 */
export function makeSymbolDetails({ retry }) {
  const title = element("h2", { class: "name symbol-title" });
  const close = element("button", { class: "button is-icon", type: "button", "aria-label": "Close", onclick: () => root.close() }, icon("close"));
  const body = element("div", { class: "symbol-body" });
  const root = element("dialog", { class: "dialog symbol-dialog", "aria-label": "Names of a binary" }, element("div", { class: "card-head" }, title, close), body);
  root.addEventListener("click", (event) => event.target === root && root.close());
  let shown = "";

  const show = (/** @type {DeskRow} */ row, /** @type {number} */ now_s) => {
    title.textContent = visibleText(row.base);
    title.title = visibleText(row.path);
    fill(body, ...facts(row, now_s), ...remedy(row, retry), ...sources(row, now_s));
  };
  return {
    root,
    open(row, now_s) {
      shown = row.id;
      show(row, now_s);
      root.showModal();
    },
    update(rows, now_s) {
      const row = rows.find((each) => each.id === shown);
      if (root.open && row) show(row, now_s);
    },
  };
}

/** @param {DeskRow} row @param {number} now_s @returns {Node[]} */
function facts(row, now_s) {
  const why = whyOf(row.why);
  const entries = /** @type {Array<[string, import("./dom.js").Child[]]>} */ ([
    ["Names", [row.service ? "none" : row.state === "named" ? qualityWords(row.quality) : "none", " ", badge(why.words, why.tone)]],
    ["Without names", [formatDuration(row.unnamed_ns), row.cpu_ns > row.unnamed_ns && element("span", { class: "is-quiet" }, ` of ${formatDuration(row.cpu_ns)} of CPU`)]],
    row.service ? ["Service", [element("span", { class: "name" }, visibleText(row.service))]] : ["Path", [element("span", { class: "name is-path" }, visibleText(row.path) || "–")]],
    !row.service && ["Build ID", [row.build_id ? buildId(row) : "none: told from others by a hash of its code"]],
    row.since_s > 0 && ["Known for", [formatAge(Math.max(0, now_s - row.since_s)), element("span", { class: "is-quiet" }, ` since ${formatDay(row.since_s)} ${formatClock(row.since_s, false)}`)]],
    row.reason && ["Says", [visibleText(row.reason)]],
  ].filter(Boolean));
  return [element("dl", { class: "symbol-facts" }, ...entries.flatMap(([label, value]) => [element("dt", {}, label), element("dd", {}, ...value)]))];
}

/** @param {DeskRow} row */
function buildId(row) {
  const copy = element("button", { class: "button is-icon is-tiny", type: "button", "aria-label": "Copy the build ID", title: "Copy", onclick: () => copyText(row.build_id, "Build ID copied.") }, icon("copy"));
  return element("span", { class: "symbol-build" }, element("span", { class: "name is-path" }, row.build_id), copy);
}

/** @param {DeskRow} row @param {(row: DeskRow) => Promise<void>} retry @returns {Node[]} */
function remedy(row, retry) {
  const again = element("button", { class: "button", type: "button", onclick: () => retry(row) }, "Try again");
  const canRetry = !row.service && row.why !== "" && row.why !== "not-asked" && row.why !== "reading";
  if (!row.remedy.words && !canRetry) return [];
  return [
    element("h3", {}, "What mends it"),
    element("p", { class: "symbol-words" }, row.remedy.words),
    row.remedy.command && commandBox(row.remedy.command),
    canRetry && element("p", { class: "symbol-again" }, again, element("span", { class: "is-quiet" }, "this host now, the agents at their next push, a debuginfod server at most once an hour")),
  ].filter((each) => each instanceof Node);
}

/** @param {DeskRow} row @param {number} now_s @returns {Node[]} */
function sources(row, now_s) {
  if (row.service) return [];
  const waiting = row.is_queued ? [element("li", {}, badge("waiting", "grey"), element("span", {}, "debuginfod"), element("span", { class: "is-quiet" }, "its turn comes"))] : [];
  const tried = row.sources.map((source) => sourceItem(source, now_s));
  const none = element("p", { class: "is-quiet" }, "Nothing yet.");
  return [element("h3", {}, "Sources tried"), tried.length + waiting.length > 0 ? element("ol", { class: "symbol-sources" }, ...waiting, ...tried) : none];
}

/** @param {SourceRow} source @param {number} now_s */
function sourceItem(source, now_s) {
  const outcome = outcomeOf(source.outcome);
  const age = formatAge(Math.max(0, now_s - source.at_s));
  const place = source.place && element("span", { class: "name is-quiet is-path" }, ` ${visibleText(source.place)}`);
  const words = [source.quality && qualityWords(source.quality), visibleText(source.reason)].filter(Boolean).join(" · ");
  return element("li", {},
    badge(outcome.words, outcome.tone),
    element("span", {}, originWords(source.origin), place, words && element("span", { class: "symbol-said is-quiet" }, words)),
    element("time", { class: "is-quiet" }, age === "now" ? "now" : `${age} ago`));
}
