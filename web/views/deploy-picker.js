// SPDX-License-Identifier: Apache-2.0
/** Deploys to choose from: each puts its two versions, in its ranges, on the sides of a comparison. */

import { comparisonOfDeploy } from "../core/compare.js";
import { countOf, visibleText } from "../core/text.js";
import { formatClock, formatDay } from "../core/units.js";
import { getJson } from "../net/api.js";
import { element, fill, icon } from "./dom.js";
import { makePopover } from "./popover.js";

/** @typedef {import("../net/api.js").DeployRow} DeployRow */

const FROM = "-30d";
const SHOWN_AT_MOST = 50;

/**
 * @param {{service: () => string, choose: (sides: import("../core/compare.js").CompareState) => void}} asked `service` is "" for all
 * @returns {HTMLElement}
 */
export function makeDeployPicker({ service, choose }) {
  const button = element("button", { class: "button", type: "button", "aria-label": "Compare a deploy" }, "Deploy", icon("chevron"));
  const list = element("div", { class: "range-presets", role: "group", "aria-label": "Deploys" });
  const open = async () => {
    fill(list, element("p", { class: "is-quiet" }, "Reading …"));
    try {
      const answer = await getJson("deploys", { service: service(), from: FROM, until: "now" });
      const deploys = /** @type {DeployRow[]} */ (answer.deploys).slice(0, SHOWN_AT_MOST);
      fill(list, ...deploys.map(choiceOf), deploys.length === 0 && element("p", { class: "is-quiet" }, "No deploy in the last 30 days."));
    } catch (error) {
      fill(list, element("p", { class: "is-quiet", role: "alert" }, error instanceof Error ? error.message : String(error)));
    }
  };
  const choiceOf = (/** @type {DeployRow} */ deploy) => {
    const press = () => {
      popover.close();
      choose(comparisonOfDeploy(deploy));
    };
    const versions = `${visibleText(deploy.replaced)} → ${visibleText(deploy.version)}`;
    const when = `${formatDay(deploy.first_seen_s)} ${formatClock(deploy.first_seen_s, false)}`;
    const how = deploy.compare.is_canary ? `canary, ${deploy.hosts_done} of ${countOf(deploy.hosts_total, "host")}` : "before and after";
    return element("button", { class: "range-preset", type: "button", onclick: press },
      element("span", { class: "name" }, service() ? versions : `${visibleText(deploy.service)} ${versions}`), element("span", { class: "is-quiet" }, ` ${when} · ${how}`));
  };
  const popover = makePopover(button, element("div", { class: "range-panel" }, list), { onOpen: open });
  return popover.root;
}
