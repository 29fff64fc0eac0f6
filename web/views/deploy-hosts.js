// SPDX-License-Identifier: Apache-2.0
/** How a deploy came over its hosts: one mark for each at the time it was first seen there, and the list. */

import { percentOf } from "../core/chart.js";
import { countOf, visibleText } from "../core/text.js";
import { formatClock, formatDay } from "../core/units.js";
import { element, fill } from "./dom.js";

/** @typedef {import("../net/api.js").DeployAnswer} DeployAnswer */

/** @returns {{root: HTMLElement, show: (answer: DeployAnswer) => void}} */
export function makeHostsCard() {
  const title = element("h2", {}, "Hosts");
  const strip = element("div", { class: "host-strip", "aria-hidden": "true" });
  const ends = element("div", { class: "host-ends is-quiet" });
  const list = element("ul", { class: "host-list" });
  const details = element("details", {}, element("summary", {}, "Each host"), list);
  const root = element("section", { class: "card", "aria-label": "Hosts" }, element("div", { class: "card-head" }, title), element("div", { class: "host-body" }, strip, ends, details));
  return {
    root,
    show({ deploy, hosts }) {
      const first_s = hosts.length ? hosts[0].first_seen_s : deploy.first_seen_s;
      const last_s = hosts.length ? hosts[hosts.length - 1].first_seen_s : first_s;
      const span = { from_s: first_s, until_s: Math.max(last_s, first_s + 60) };
      title.textContent = deploy.hosts_done >= deploy.hosts_total ? `On all ${countOf(deploy.hosts_total, "host")}` : `On ${deploy.hosts_done} of ${countOf(deploy.hosts_total, "host")}`;
      fill(strip, ...hosts.map(({ first_seen_s }) => {
        const mark = element("span", {});
        mark.style.left = `${percentOf(first_seen_s, span)}%`;
        return mark;
      }));
      fill(ends, element("span", {}, `${formatDay(first_s)} ${formatClock(first_s)}`), element("span", {}, hosts.length > 1 ? `${formatClock(last_s)} on the last` : ""));
      fill(list, ...hosts.map(({ host, first_seen_s }) => element("li", {}, element("span", { class: "name" }, visibleText(host)), element("span", { class: "is-quiet" }, formatClock(first_seen_s)))));
    },
  };
}
