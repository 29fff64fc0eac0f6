// SPDX-License-Identifier: Apache-2.0
/** The fleet: its services by CPU, with what is known of each. Home of the page, and where the first data is waited for. */

import { formatRelative } from "../core/diff-words.js";
import { addressFromState, stateOfView } from "../core/route.js";
import { isLossGrave } from "../core/quality.js";
import { countOf, visibleText } from "../core/text.js";
import { formatAge, formatCount, formatCores, formatCoresBare, formatDuration, formatLoss, formatShare } from "../core/units.js";
import { relativeLabel } from "../core/range.js";
import { getJson } from "../net/api.js";
import { makeDataTable } from "./data-table.js";
import { element, fill } from "./dom.js";
import { makeLoader } from "./loader.js";
import { badge, commandBox, shareBar, sparkLine, statTile } from "./parts.js";

/**
 * @typedef {import("../net/api.js").ServiceRow} ServiceRow
 * @typedef {import("../net/api.js").ServicesAnswer} ServicesAnswer
 * @typedef {import("../core/route.js").State} State
 * @typedef {{store: import("../state/store.js").Store, signal: AbortSignal}} Context `signal` is aborted when the view leaves
 * @typedef {{update: (state: State, previous: State) => void, refresh: () => void, unmount: () => void}} View
 */

const DEFAULT_SORT = "cpu";
const UNNAMED_FINE = 0.05;
const WHOLE_FINE = 0.95;
const WATCH_MS = 2000;

/**
 * @param {HTMLElement} place
 * @param {Context} context
 * @returns {View}
 */
export function mountFleet(place, { store }) {
  const totals = element("dl", { class: "stats" });
  const filter = element("input", {
    class: "input fleet-filter",
    type: "search",
    placeholder: "Filter services",
    "aria-label": "Filter services",
    "data-search": true,
    oninput: () => store.set({ search: filter.value }, { replace: true }),
  });
  const table = makeDataTable({
    caption: "Services by CPU",
    columns: fleetColumns(store),
    onSort: (sort) => store.set({ sort }),
    isShown: (column) => column.key !== "unnamed" || hasUnnamed(answer),
    className: "fleet-table is-cards",
  });
  const none = element("p", { class: "table-none", hidden: true });
  const head = element("div", { class: "view-head" }, element("h1", {}, "Fleet"), totals);
  const list = element("div", { class: "card" }, element("div", { class: "card-head" }, element("h2", {}, "Services"), filter), table.root, none);
  const panel = element("section", { class: "panel", "aria-label": "Services" }, list);
  const loader = makeLoader(panel, { retry: () => load() });
  /** @type {ServicesAnswer | null} */
  let answer = null;
  let watching = 0;

  const show = () => {
    if (!answer) return;
    const isEmpty = answer.services.length === 0;
    clearTimeout(watching);
    head.hidden = isEmpty && answer.agents.total === 0;
    list.hidden = isEmpty;
    fill(totals, ...totalTiles(answer));
    if (isEmpty) {
      loader.say(...emptyWords(answer, store));
      watching = window.setTimeout(() => load(true), WATCH_MS);
      return;
    }
    const state = store.get();
    filter.value = state.search;
    const wanted = state.search.toLowerCase();
    const rows = answer.services.filter((row) => row.service.toLowerCase().includes(wanted));
    table.show(rows, state.sort || DEFAULT_SORT);
    none.hidden = rows.length > 0;
    none.textContent = `No service is named like “${state.search}”.`;
  };
  const load = async (isQuiet = false) => {
    const { from, until } = store.get();
    const read = await loader.run("Reading the services", (signal) => getJson("services", { from, until }, signal), { isQuiet });
    if (!read) {
      if (answer?.services.length === 0) watching = window.setTimeout(() => load(true), WATCH_MS);
      return;
    }
    answer = read;
    show();
  };
  fill(place, head, panel);
  load();
  return {
    update(state, previous) {
      if (state.from !== previous.from || state.until !== previous.until) load();
      else show();
    },
    refresh: () => load(true),
    unmount() {
      clearTimeout(watching);
      loader.cancel();
    },
  };
}

/** Not every server works out names for the whole fleet. @param {ServicesAnswer | null} answer */
function hasUnnamed(answer) {
  return answer !== null && answer.services.some((row) => row.unnamed_share !== null);
}

/** @param {ServicesAnswer} answer */
function totalTiles({ totals, services, agents }) {
  const heard = agents.total - agents.silent;
  return [
    statTile("CPU now", formatCores(totals.cores_now)),
    statTile("CPU in range", formatDuration(totals.cpu_ns)),
    statTile("Services", formatCount(services.length)),
    statTile("Hosts", agents.silent === 0 ? formatCount(agents.total) : [heard, "of", agents.total].join(" "), agents.silent > 0 && badge(`${agents.silent} silent`, "amber")),
  ];
}

/**
 * @param {import("../state/store.js").Store} store
 * @returns {import("./data-table.js").Column<ServiceRow>[]}
 */
function fleetColumns(store) {
  return [
    {
      key: "service",
      label: "Service",
      value: (row) => row.service,
      cell: (row) => {
        const href = addressFromState(stateOfView(store.get(), "service", row.service));
        return element("a", { class: "row-link name", href, "data-route": true }, visibleText(row.service));
      },
    },
    { key: "cores", label: "Cores now", title: "At the end of this range", value: (row) => row.cores_now, isDescending: true, isNumber: true, cell: (row) => formatCoresBare(row.cores_now) },
    {
      key: "trend",
      label: "Trend",
      value: () => null,
      isFixed: true,
      cell: (row) => sparkLine(row.spark, `Cores over the range, at most ${formatCores(Math.max(0, ...row.spark.map((each) => each ?? 0)))}`),
    },
    { key: "cpu", label: "Share", title: "Of the fleet's CPU in this range", value: (row) => row.cpu_ns, isDescending: true, cell: (row) => shareBar(row.share) },
    { key: "version", label: "Version", value: (row) => row.version || null, cell: versionCell },
    {
      key: "change",
      label: "Last deploy",
      title: "What the version that runs has changed in CPU; grey inside noise",
      value: (row) => (row.deploy && !row.deploy.is_noise ? row.deploy.change : null),
      isDescending: true,
      isNumber: true,
      cell: (row) => changeCell(row, store),
    },
    { key: "hosts", label: "Hosts", value: (row) => row.hosts, isDescending: true, isNumber: true, cell: (row) => formatCount(row.hosts) },
    {
      key: "lost",
      label: "Lost",
      title: "Samples that were due on its hosts and are missing",
      value: (row) => row.lost_share,
      isDescending: true,
      isNumber: true,
      cell: (row) => numberOrBadge(row.lost_share, isLossGrave(row.lost_share), "of the samples of its hosts were lost"),
    },
    {
      key: "whole",
      label: "Whole stacks",
      title: "CPU whose stack reaches from leaf to root",
      value: (row) => row.whole_share,
      isNumber: true,
      cell: (row) => (row.whole_share === null ? "–" : wholeCell(row.whole_share)),
    },
    {
      key: "unnamed",
      label: "Unnamed",
      title: "CPU in functions without a name",
      value: (row) => row.unnamed_share,
      isDescending: true,
      isNumber: true,
      cell: (row) => (row.unnamed_share === null ? "–" : numberOrBadge(row.unnamed_share, row.unnamed_share > UNNAMED_FINE, "of its CPU is in functions without a name")),
    },
  ];
}

/** @param {ServiceRow} row */
function versionCell({ version, version_since_s, versions }) {
  if (!version) return element("span", { class: "is-quiet" }, "–");
  const age = !version_since_s ? "" : formatAge(Math.max(0, Date.now() / 1000 - version_since_s));
  const more = versions > 1 ? `, one of ${versions}` : "";
  return element(
    "span",
    { class: "version" },
    element("span", { class: "version-name name", title: visibleText(version) }, visibleText(version)),
    element("span", { class: "is-quiet" }, age ? `${age}${more}` : more.slice(2)),
  );
}

/** @param {ServiceRow} row @param {import("../state/store.js").Store} store */
function changeCell({ deploy }, store) {
  if (!deploy) return element("span", { class: "is-quiet" }, "–");
  const href = addressFromState({ ...stateOfView(store.get(), "deploy"), id: deploy.id });
  const tone = deploy.is_noise ? "is-noise" : deploy.change > 0 ? "is-more" : "is-less";
  return element("a", { class: `verdict-words ${tone}`, href, "data-route": true, title: `${deploy.words}: the report` }, formatRelative(deploy.change));
}

/**
 * @param {number} share
 * @param {boolean} isGrave
 * @param {string} words
 */
function numberOrBadge(share, isGrave, words) {
  if (isGrave) return badge(formatLoss(share), "amber", `${formatLoss(share)} ${words}`);
  return element("span", { class: "is-quiet" }, formatLoss(share));
}

/** @param {number} share of whole stacks */
function wholeCell(share) {
  if (share < WHOLE_FINE) return badge(formatShare(share), "amber", `${formatShare(share)} of its CPU has its stack from leaf to root`);
  return element("span", { class: "is-quiet" }, formatShare(share));
}

/** The server as another host would call it: a loopback address means nothing there. */
function serverName() {
  return /^(localhost|127\.|\[::1\])/.test(location.hostname) ? "SERVER" : location.hostname;
}

/**
 * Why there is nothing, and what brings the first data.
 * @param {ServicesAnswer} answer
 * @param {import("../state/store.js").Store} store
 */
function emptyWords({ agents }, store) {
  const state = store.get();
  if (agents.total > 0 && relativeLabel(state) === null) {
    const toNow = () => store.set({ from: "-15m", until: "now", live: true });
    return [
      element("p", { class: "message-title" }, "No data in this range."),
      element("p", { class: "message-hint" }, `${countOf(agents.total, "agent")} known to the server sent nothing for it.`),
      element("p", {}, element("button", { class: "button", type: "button", onclick: toNow }, "Show the last 15 minutes")),
    ];
  }
  const waiting =
    agents.total > 0
      ? `${countOf(agents.total, "agent")} connected. The first samples arrive within 10 seconds.`
      : "Watching for the first agent …";
  const steps = [
    { title: "Profile the host of this server", command: "sudo emberwatch-agent run --server localhost:4041" },
    { title: "Profile another host", command: `sudo emberwatch-agent run --server ${serverName()}:4041 --insecure` },
    { title: "See what a kernel offers", command: "sudo emberwatch-agent doctor" },
  ];
  return [
    element("div", { class: "welcome" },
      element("h1", {}, "No data yet"),
      element("p", { class: "message-hint" }, "An agent on a host samples every process on it, 99 times a second on each CPU. Start one:"),
      element("ol", { class: "steps" }, ...steps.map(({ title, command }) => element("li", {}, element("h2", {}, title), commandBox(command)))),
      element("p", { class: "watching", role: "status" }, element("span", { class: "live-dot is-on", "aria-hidden": "true" }), waiting),
    ),
  ];
}
