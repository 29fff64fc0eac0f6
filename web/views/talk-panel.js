// SPDX-License-Identifier: Apache-2.0
/** Who talks to whom: services that call this one, and what it calls; by name where both ends are known, else by address. */

import { addressFromState, stateOfView } from "../core/route.js";
import { countOf, visibleText } from "../core/text.js";
import { formatBytes, formatCount } from "../core/units.js";
import { getJson } from "../net/api.js";
import { element, fill } from "./dom.js";
import { makeLoader } from "./loader.js";

/**
 * @typedef {{caller: string, service: string, host: string, address: string, values: Record<string, number>}} Edge
 * @typedef {{calls: Edge[], calls_total: number, called_by: Edge[], called_by_total: number}} PeersAnswer
 */

const SHOWN = 12;

/**
 * @param {import("./fleet.js").Context} context
 * @param {{parameters: () => {from: string, until: string}}} of
 */
export function makeTalkPanel({ store }, { parameters }) {
  const body = element("div", { class: "talk" });
  const root = element("section", { class: "card panel talk-panel", "aria-label": "Who talks to whom" },
    element("div", { class: "card-head" }, element("h2", {}, "Who talks to whom"), element("p", { class: "is-quiet card-note" }, "bytes both ways")), element("div", { class: "panel-picture" }, body));
  const loader = makeLoader(root, { retry: () => load() });
  const load = async ({ isQuiet = false } = {}) => {
    const { from, until } = parameters();
    const { service } = store.get();
    const answer = await loader.run("Reading who talks to whom", (stop) => getJson("peers", { service, from, until }, stop), { isQuiet });
    if (answer) show(answer);
  };
  const show = (/** @type {PeersAnswer} */ { calls, calls_total, called_by, called_by_total }) => {
    const most = Math.max(1, ...[...calls, ...called_by].map(bytesOf));
    const link = (/** @type {string} */ service) => addressFromState({ ...stateOfView(store.get(), "service", service), tab: "tcp" });
    fill(body,
      side("Called by", called_by, called_by_total, "No service known here calls it.", { most, link, nameOf: (edge) => ({ service: edge.caller, address: "" }) }),
      side("Calls", calls, calls_total, "It opened no connection.", { most, link, nameOf: (edge) => ({ service: edge.service, address: edge.address }) }));
  };
  return { root, load, cancel: () => loader.cancel() };
}

/** @param {Edge} edge */
function bytesOf({ values }) {
  return (values.bytes_out ?? 0) + (values.bytes_in ?? 0);
}

/**
 * @param {string} title
 * @param {Edge[]} edges
 * @param {number} total
 * @param {string} none
 * @param {{most: number, link: (service: string) => string, nameOf: (edge: Edge) => {service: string, address: string}}} how
 */
function side(title, edges, total, none, { most, link, nameOf }) {
  const items = edges.slice(0, SHOWN).map((edge) => {
    const { service, address } = nameOf(edge);
    const name = service
      ? element("a", { class: "name talk-name", href: link(service), "data-route": true }, visibleText(service))
      : element("span", { class: "name talk-name is-quiet", title: "No service known here listens there" }, visibleText(address));
    const bar = element("span", { class: "talk-bar", "aria-hidden": "true" });
    bar.style.width = `${(bytesOf(edge) / most) * 100}%`;
    const opened = edge.values.connects ?? 0;
    const figures = element("span", { class: "talk-figures is-quiet" }, `${formatBytes(bytesOf(edge))} · ${formatCount(opened)} opened`);
    return element("li", { class: "talk-edge" }, bar, name, figures);
  });
  const rest = total > items.length ? element("p", { class: "table-note" }, `and ${countOf(total - items.length, "other")}`) : null;
  return element("div", { class: "talk-side" }, element("h3", {}, title), items.length > 0 ? element("ul", {}, ...items) : element("p", { class: "is-quiet" }, none), rest);
}
