// SPDX-License-Identifier: Apache-2.0
/** The report of a deploy: what it comes to in one sentence, CPU before and after, the functions that changed, how far it has come. */

import { comparisonOfDeploy } from "../core/compare.js";
import { addressFromState, stateOfComparison, stateOfView } from "../core/route.js";
import { countOf, visibleText } from "../core/text.js";
import { formatAge, formatClock, formatCount, formatDay } from "../core/units.js";
import { getJson } from "../net/api.js";
import { makeChangesCard } from "./deploy-changes.js";
import { makeCpuCard } from "./deploy-cpu.js";
import { makeHostsCard } from "./deploy-hosts.js";
import { copyText, element, fill, icon } from "./dom.js";
import { makeLoader } from "./loader.js";

/**
 * @typedef {import("../net/api.js").DeployRow} DeployRow
 * @typedef {import("../net/api.js").DeployAnswer} DeployAnswer
 * @typedef {import("./fleet.js").Context} Context
 * @typedef {import("./fleet.js").View} View
 */

const REFRESH_MS = 10_000;

/**
 * @param {HTMLElement} place
 * @param {Context} context
 * @returns {View}
 */
export function mountDeploy(place, { store }) {
  const head = element("div", { class: "view-head is-report" });
  const verdict = element("div", { class: "report-verdict", role: "status" });
  const cpu = makeCpuCard();
  const changes = makeChangesCard(store);
  const hosts = makeHostsCard();
  const notes = element("ul", { class: "report-notes is-quiet" });
  const picture = element("div", { class: "panel-picture report" }, verdict, cpu.root, changes.root, hosts.root, notes);
  const panel = element("section", { class: "panel", "aria-label": "Report" }, picture);
  const loader = makeLoader(panel, { retry: () => load(false) });
  let timer = 0;

  const load = async (/** @type {boolean} */ isQuiet) => {
    clearTimeout(timer);
    const read = (/** @type {AbortSignal} */ signal) => Promise.all([getJson(`deploys/${store.get().id}`, {}, signal), getJson("now", {}, signal)]);
    const answers = await loader.run("Reading the report", read, { isQuiet });
    if (!answers) return;
    const [answer, { now_s }] = answers;
    fill(head, ...headParts(answer, store));
    fill(verdict, ...verdictParts(answer, now_s));
    cpu.show(answer);
    changes.show(answer);
    hosts.show(answer);
    fill(notes, ...(answer.report?.notes ?? []).map((/** @type {string} */ note) => element("li", {}, note)));
    // It has no range to follow: it is read again while it grows.
    if (!answer.deploy.verdict?.is_final) timer = window.setTimeout(() => load(true), REFRESH_MS);
  };
  fill(place, head, panel);
  load(false);
  return {
    update() {},
    refresh() {},
    unmount() {
      clearTimeout(timer);
      loader.cancel();
    },
  };
}

/** @param {DeployAnswer} answer @param {import("../state/store.js").Store} store */
function headParts({ deploy }, store) {
  const state = store.get();
  const to = (/** @type {import("../core/route.js").State} */ next) => ({ href: addressFromState(next), "data-route": true });
  const compare = deploy.compare.is_canary ? "Compare canary" : "Compare before / after";
  const copyLink = () => copyText(location.origin + addressFromState(state), "Link copied. The report stays there.");
  return [
    element("div", { class: "title" },
      element("a", { class: "crumb", ...to(stateOfView(state, "deploys")) }, "Deploys"),
      element("span", { class: "crumb-mark", "aria-hidden": "true" }, "/"),
      element("h1", { class: "name" },
        element("a", { class: "report-service", ...to(stateOfView(state, "service", deploy.service)) }, visibleText(deploy.service)), " ",
        element("span", { class: "report-versions" }, element("span", { class: "is-quiet" }, visibleText(deploy.replaced)),
          element("span", { class: "is-quiet", "aria-label": deploy.is_return ? "taken back to" : "replaced by" }, " → "), visibleText(deploy.version)))),
    element("div", { class: "share-menu" },
      element("a", { class: "button", ...to(stateOfComparison(state, comparisonOfDeploy(deploy))) }, icon("swap"), compare),
      element("button", { class: "button", type: "button", onclick: copyLink }, icon("link"), "Copy link")),
  ];
}

/** @param {DeployAnswer} answer @param {number} now_s */
function verdictParts({ deploy, missing }, now_s) {
  const { verdict, compare, annotation } = deploy;
  const when = `${formatDay(deploy.first_seen_s)} ${formatClock(deploy.first_seen_s, false)}`;
  const came = `${deploy.is_return ? "Came back" : "First seen"} ${when}, ${formatAge(Math.max(0, now_s - deploy.first_seen_s))} ago`;
  const far = deploy.hosts_done >= deploy.hosts_total ? `on all ${countOf(deploy.hosts_total, "host")}` : `on ${formatCount(deploy.hosts_done)} of ${countOf(deploy.hosts_total, "host")}`;
  const how = compare.is_canary ? "old beside new in the same minutes" : "after against before";
  const pace = verdict === null ? "" : verdict.is_final ? "; final" : `; as of ${formatAge(Math.max(0, now_s - verdict.made_s))} ago, and it goes on`;
  return [
    element("p", { class: `report-words ${toneOf(deploy)}` }, verdict === null ? "No verdict yet" : verdict.words),
    element("p", { class: "is-quiet" }, `${came}, ${far}. `, verdict === null ? `${missing}.` : `Compared ${how}${pace}.`),
    annotation && element("p", { class: "report-note" }, visibleText(annotation.replaceAll("\n", " · "))),
  ].filter((each) => each instanceof Node);
}

/** The colour of a verdict, beside its words. @param {DeployRow} deploy */
export function toneOf({ verdict }) {
  if (verdict === null || verdict.is_noise) return "is-noise";
  return verdict.change > 0 ? "is-more" : "is-less";
}
