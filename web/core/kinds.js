// SPDX-License-Identifier: Apache-2.0
/** The kinds of a service's page: its tabs, where each second went, and which wait leads where. */

import { formatDuration } from "./units.js";

/** @typedef {import("./route.js").State} State */
/** @typedef {{key: string, label: string, kinds: readonly string[], without: string}} Tab `key` is the kind its graph is of */

/** @type {ReadonlyArray<Readonly<Tab>>} */
export const TABS = Object.freeze([
  { key: "cpu", label: "CPU", kinds: ["cpu"], without: "" },
  { key: "offcpu", label: "Waiting", kinds: ["offcpu", "runqueue", "time"], without: "No agent sent waits of this service in this range." },
  { key: "lock", label: "Locks", kinds: ["lock", "lock_hold"], without: "No agent saw this service wait for a lock in this range." },
  { key: "syscall", label: "System calls", kinds: ["syscall", "syscall_stack"], without: "No agent counted system calls of this service in this range." },
  { key: "tcp", label: "TCP", kinds: ["tcp", "tcp_stack"], without: "No agent saw TCP connections of this service in this range." },
]);

/** What stands behind a time of each kind. @type {Readonly<Record<string, string>>} */
const SPENT_WORDS = Object.freeze({ cpu: "of CPU", offcpu: "waited", runqueue: "waited for a CPU", lock: "waited for locks", lock_hold: "held locks", syscall: "in calls", syscall_stack: "in calls", tcp_stack: "connects" });

/** What stands behind a time of a kind: `of CPU`, `waited`. @param {string} selector that of a question, with its kind in front */
export function spentWords(selector) {
  return SPENT_WORDS[/^\s*(\w*)/.exec(selector)?.[1] ?? ""] ?? "in all";
}

/** The tab that shows a kind. @param {string} kind */
export function tabOfKind(kind) {
  return (TABS.find(({ kinds }) => kinds.includes(kind)) ?? TABS[0]).key;
}

/**
 * @typedef {{column: string, key: string, label: string, isIdle?: boolean, words: string}} Spent where time of threads goes; `key` names
 *   its colour (--spent-KEY), and for waits their class
 */

/** In the order they are stacked, from the ground up. @type {ReadonlyArray<Readonly<Spent>>} */
export const SPENT = Object.freeze([
  { column: "cpu_ns", key: "cpu", label: "On CPU", words: "running" },
  { column: "runnable_ns", key: "runnable", label: "Runnable", words: "ready to run, waiting for a CPU" },
  { column: "lock_ns", key: "lock", label: "Lock", words: "waiting for a lock" },
  { column: "disk_ns", key: "disk", label: "Disk", words: "waiting for a disk" },
  { column: "net_ns", key: "net", label: "Network", words: "waiting for the network" },
  { column: "pipe_ns", key: "pipe", label: "Pipe", words: "waiting at a pipe" },
  { column: "page_ns", key: "page", label: "Memory", words: "waiting for a page of memory" },
  { column: "child_ns", key: "child", label: "Child", words: "waiting for a child process" },
  { column: "other_ns", key: "other", label: "Other", words: "waiting for something else" },
  { column: "poll_ns", key: "poll", label: "Waiting for work", words: "waiting for work to come", isIdle: true },
  { column: "sleep_ns", key: "sleep", label: "Sleeping", words: "sleeping on purpose", isIdle: true },
]);

/**
 * What of the state changes to see where a part went.
 * @param {Spent} spent
 * @returns {Partial<State>}
 */
export function stateOfSpent({ key, isIdle }) {
  const plain = { at: "", waits: [], idle: /** @type {const} */ ("hide"), column: /** @type {const} */ (""), object: "" };
  if (key === "cpu") return { ...plain, tab: "cpu" };
  if (key === "runnable") return { ...plain, tab: "runqueue" };
  return { ...plain, tab: "offcpu", waits: [key], idle: isIdle ? "show" : "hide" };
}

/** @typedef {{name: string, unit: string, merge: string, values: Array<number | null>}} ColumnValues */
/** @typedef {{kind: string, from_s: number, until_s: number, step_s: number, times_s: number[], columns: ColumnValues[]}} ColumnsAnswer */
/** @typedef {{spent: Spent, rates: Array<number | null>, total_ns: number}} Layer `rates` are thread-seconds per second */

/**
 * Layers of the parts that have a value, from the ground up; parts that wait for work are left out when they are hidden.
 * @param {ColumnsAnswer} answer
 * @param {{isIdleShown: boolean}} how
 * @returns {Layer[]}
 */
export function layersOf(answer, { isIdleShown }) {
  const lengths_s = answer.times_s.map((time_s) => Math.min(answer.step_s, answer.until_s - time_s));
  return SPENT.flatMap((spent) => {
    const values = answer.columns.find(({ name }) => name === spent.column)?.values ?? [];
    const total_ns = values.reduce((/** @type {number} */ sum, value) => sum + (value ?? 0), 0);
    if (total_ns === 0 || (spent.isIdle && !isIdleShown)) return [];
    const rates = values.map((value, at) => (value === null || lengths_s[at] <= 0 ? null : value / 1e9 / lengths_s[at]));
    return [{ spent, rates, total_ns }];
  });
}

/** Share of the threads' time that waits for work. @param {ColumnsAnswer} answer */
export function idleShareOf(answer) {
  const all = layersOf(answer, { isIdleShown: true });
  const sum = (/** @type {Layer[]} */ layers) => layers.reduce((total, { total_ns }) => total + total_ns, 0);
  const total = sum(all);
  return total > 0 ? sum(all.filter(({ spent }) => spent.isIdle)) / total : 0;
}

/**
 * Share of the switches of threads that were seen: the rest is estimated from them. Slots in which agents do not say are left out.
 * @param {ColumnsAnswer} answer of kind time
 */
export function seenShareOf({ columns }) {
  const [switches, observed] = ["switches", "observed"].map((column) => columns.find(({ name }) => name === column)?.values ?? []);
  const isSaid = (/** @type {unknown} */ _, /** @type {number} */ at) => (observed[at] ?? 0) > 0;
  const sum = (/** @type {Array<number | null>} */ values) => values.filter(isSaid).reduce((/** @type {number} */ total, value) => total + (value ?? 0), 0);
  return sum(observed) > 0 ? Math.min(1, sum(observed) / Math.max(1, sum(switches))) : 1;
}

/**
 * Share of the time of waits in which nothing could interrupt them, not even a signal: mostly for disks.
 * @param {ColumnsAnswer} answer of kind offcpu
 */
export function uninterruptibleShareOf(answer) {
  const all = sumOf(answer, "ns");
  return all > 0 ? sumOf(answer, "uninterruptible_ns") / all : 0;
}

/**
 * @param {ColumnsAnswer} answer
 * @param {string} column
 */
function sumOf({ columns }, column) {
  return (columns.find(({ name }) => name === column)?.values ?? []).reduce((/** @type {number} */ sum, value) => sum + (value ?? 0), 0);
}

/**
 * What a range lost of its CPU to others, in words; empty when nothing.
 * @param {ColumnsAnswer} answer
 */
export function withheldWords(answer) {
  const parts = [["throttled", sumOf(answer, "throttled_ns")], ["stolen", sumOf(answer, "steal_ns")]];
  return parts.filter(([, ns]) => Number(ns) > 0).map(([word, ns]) => `${word} ${formatDuration(Number(ns))}`).join(", ");
}

/**
 * The name of a frame that stands between a stack and the one that ended its wait.
 * @param {string} name
 */
export function isSeparator(name) {
  return name === "[woken by]" || name === "[held by]";
}

/** System calls that move bytes or make them last. */
export const IO_CALLS = Object.freeze([
  "read", "write", "pread64", "pwrite64", "readv", "writev", "preadv", "pwritev", "preadv2", "pwritev2", "fsync", "fdatasync",
  "sync_file_range", "sync", "syncfs", "msync", "sendfile", "sendfile64", "splice", "copy_file_range", "io_uring_enter", "io_submit",
  "io_getevents", "recvfrom", "recvmsg", "recvmmsg", "sendto", "sendmsg", "sendmmsg",
]);

/**
 * @typedef {{host: string, flags: string[]}} FlaggedAgent
 * @typedef {{off: Array<{reason: string, hosts: string[]}>, limited: Array<{host: string, percent: number}>,
 *   timed: Array<{host: string, percent: number}>}} KindState
 */

/**
 * What agents say of some kinds: `kind_off:KIND:why`, `kind_limited:KIND:percent` and, where everything is counted,
 * `kind_timed:KIND:percent`.
 * @param {readonly FlaggedAgent[]} agents
 * @param {readonly string[]} kinds
 * @returns {KindState}
 */
export function kindState(agents, kinds) {
  /** @type {Map<string, Set<string>>} */
  const reasons = new Map();
  /** @type {Record<string, Map<string, number>>} */
  const percents = { limited: new Map(), timed: new Map() };
  for (const { host, flags } of agents) {
    for (const flag of flags) {
      const found = /^kind_(off|limited|timed):(\w+):(.*)$/.exec(flag);
      if (!found || !kinds.includes(found[2])) continue;
      if (found[1] === "off") reasons.set(found[3], (reasons.get(found[3]) ?? new Set()).add(host));
      else percents[found[1]].set(host, Math.min(percents[found[1]].get(host) ?? 100, Number(found[3])));
    }
  }
  return {
    off: [...reasons].map(([reason, hosts]) => ({ reason, hosts: [...hosts] })),
    limited: leastFirst(percents.limited),
    timed: leastFirst(percents.timed),
  };
}

/** @param {Map<string, number>} percents */
function leastFirst(percents) {
  const rows = [...percents].map(([host, percent]) => ({ host, percent }));
  return rows.sort((a, b) => a.percent - b.percent || (a.host < b.host ? -1 : 1));
}

/**
 * What a reader should know of it, a sentence each.
 * @param {KindState} state
 * @returns {string[]}
 */
export function kindStateWords({ off, limited, timed }) {
  const hostsWords = (/** @type {string[]} */ hosts) => (hosts.length === 1 ? hosts[0] : `${hosts.length} hosts`);
  const words = off.map(({ reason, hosts }) => `Off on ${hostsWords(hosts)}: ${reason}`);
  if (limited.length > 0) {
    const hosts = hostsWords(limited.map(({ host }) => host));
    const verb = limited.length === 1 ? "sees" : "see";
    words.push(`To spare the host, ${hosts} ${verb} ${limited[0].percent} % of what happens; counts and times are scaled to all of it`);
  }
  if (timed.length > 0) {
    const hosts = hostsWords(timed.map(({ host }) => host));
    const [counts, takes] = timed.length === 1 ? ["counts", "takes"] : ["count", "take"];
    words.push(`To spare the host, ${hosts} ${counts} everything and ${takes} times for ${timed[0].percent} % of the time; they stand for all`);
  }
  return words;
}
