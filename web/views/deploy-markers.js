// SPDX-License-Identifier: Apache-2.0
/** Deploys on a timeline: a mark and the version at the time it was first seen, each a link to its report. */

import { addressFromState, stateOfView } from "../core/route.js";
import { visibleText } from "../core/text.js";
import { formatClock, formatDay } from "../core/units.js";
import { element, fill } from "./dom.js";

/** @typedef {import("../net/api.js").DeployRow} DeployRow */

/** So much room a version needs beside its mark. */
const LABEL_PX = 76;

/**
 * @returns {{
 *   root: HTMLElement, show: (deploys: readonly DeployRow[], state: import("../core/route.js").State) => void,
 *   place: (xOf: (time_s: number) => number, span: {from_s: number, until_s: number}) => void,
 * }} `place` is called whenever the timeline is painted
 */
export function makeDeployMarkers() {
  const root = element("ul", { class: "deploy-markers", "aria-label": "Deploys" });
  /** @type {Array<{deploy: DeployRow, item: HTMLElement}>} */
  let shown = [];
  /** @type {[(time_s: number) => number, {from_s: number, until_s: number}] | null} */
  let latest = null;
  const place = (/** @type {(time_s: number) => number} */ xOf, /** @type {{from_s: number, until_s: number}} */ span) => {
    latest = [xOf, span];
    let before_px = -LABEL_PX;
    for (const { deploy, item } of shown) {
      const isInside = deploy.first_seen_s >= span.from_s && deploy.first_seen_s < span.until_s;
      item.hidden = !isInside;
      if (!isInside) continue;
      const x = xOf(deploy.first_seen_s);
      item.style.left = `${Math.round(x)}px`;
      item.classList.toggle("is-bare", x - before_px < LABEL_PX);
      item.classList.toggle("is-left", x > xOf(span.until_s) - LABEL_PX);
      before_px = x;
    }
  };
  return {
    root,
    place,
    show(deploys, state) {
      shown = [...deploys]
        .sort((first, second) => first.first_seen_s - second.first_seen_s)
        .map((deploy) => ({ deploy, item: markerOf(deploy, state) }));
      fill(root, ...shown.map(({ item }) => item));
      if (latest) place(...latest);
    },
  };
}

/**
 * @param {DeployRow} deploy
 * @param {import("../core/route.js").State} state
 */
function markerOf(deploy, state) {
  const version = visibleText(deploy.version);
  const when = `${formatDay(deploy.first_seen_s)} ${formatClock(deploy.first_seen_s)}`;
  const note = deploy.annotation ? `\n${visibleText(deploy.annotation)}` : "";
  const words = `${version} replaced ${visibleText(deploy.replaced)} from ${when} on, ${deploy.hosts_done} of ${deploy.hosts_total} hosts.${deploy.verdict ? ` ${deploy.verdict.words}.` : ""}`;
  const href = addressFromState({ ...stateOfView(state, "deploy"), id: deploy.id });
  return element(
    "li",
    { class: "deploy-marker", hidden: true },
    element(
      "a",
      { href, "data-route": true, title: `${words}${note}\nIts report`, "aria-label": `${words} Its report` },
      element("span", { class: "deploy-mark", "aria-hidden": "true" }),
      element("span", { class: "deploy-version name" }, version),
    ),
  );
}
