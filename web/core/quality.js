// SPDX-License-Identifier: Apache-2.0
/** What a graph is worth, in words: grey when fine, amber and said in full when not. */

import { countOf } from "./text.js";
import { formatCount, formatLoss, formatShare } from "./units.js";

/**
 * @typedef {{
 *   expected: number, stored: number, idle: number, filtered: number,
 *   lost: Record<string, number>, lost_share: number,
 *   is_of_hosts?: boolean, stack_lost: Record<string, number>, stack_lost_share: number,
 *   truncated_share: number, unwind_stopped_share?: number, kernel_hidden_share?: number, unnamed_share: number | null, unknown_share: number | null, whole_share: number | null,
 *   hosts: number | string[], hosts_silent: string[], naming?: number,
 * }} Quality
 * @typedef {{key: string, label: string, value: string, isFine: boolean, words: string}} QualityItem
 */

/** Shares above which a number turns amber. */
const LIMITS = Object.freeze({ lost: 0.005, stackLost: 0.005, truncated: 0.01, unnamed: 0.05, broken: 0.05 });

/** A share of lost samples is worth a warning. @param {number} share */
export function isLossGrave(share) {
  return share > LIMITS.lost;
}

/** Words of the reasons in the proto's list, without their prefix. @type {Readonly<Record<string, string>>} */
const REASON_WORDS = Object.freeze({
  MAP_FULL: "the map of counts was full",
  MAP_BUSY: "the map of counts refused an update",
  TIMER_MISSED: "the timer did not fire (stolen time, interrupts off)",
  CPU_OFFLINE: "a CPU went or came",
  AGENT_DOWN: "the agent was not running",
  AGENT_OVERRUN: "the agent kept inside its budget",
  SPOOL_EVICTED: "the agent's queue on disk was full",
  SPOOL_CORRUPT: "a record of the agent's queue was damaged",
  REJECTED_LIMIT: "a window was over a limit of the server",
  REJECTED_TIME: "a window's time was refused",
  REJECTED_AUTH: "the sender was refused",
  REJECTED_MALFORMED: "a window could not be read",
  SERVER_SHED: "the server was overloaded",
  UNEXPLAINED: "cause not known",
  STACK_ENOMEM: "no memory for the stack",
  STACK_EEXIST: "two stacks met in one slot",
  STACK_EFAULT_USER: "the user stack could not be read",
  STACK_MAP_FULL: "the map of stacks was full",
  STACK_OTHER: "the kernel gave no stack",
  TRUNCATED: "deeper than 127 frames, the outermost are missing",
  UNWIND_STOPPED: "the outermost frames were not found",
  EXITED: "the process was gone before it could be read",
  EXEC_RACE: "the process changed its program",
});

/**
 * @param {string} reason as the API names it, in any case, with or without LOSS_REASON_
 * @returns {string}
 */
export function reasonWords(reason) {
  const key = reason.toUpperCase().replace(/^LOSS_REASON_/, "");
  return REASON_WORDS[key] ?? key.toLowerCase().replaceAll("_", " ");
}

/**
 * Losses by reason, largest first, nothing that is zero.
 * @param {Record<string, number>} lost
 * @returns {Array<{reason: string, words: string, count: number}>}
 */
export function lossesByReason(lost) {
  return Object.entries(lost)
    .filter(([, count]) => count > 0)
    .sort((a, b) => b[1] - a[1] || a[0].localeCompare(b[0]))
    .map(([reason, count]) => ({ reason, words: reasonWords(reason), count }));
}

/** Reasons whose stacks are there but for their outermost frames; they are no part of stack_lost_share. */
const ONLY_SHORTENED = ["TRUNCATED", "UNWIND_STOPPED"];

/** @param {Record<string, number>} lost */
export function mainReason(lost) {
  return lossesByReason(lost)[0]?.words ?? "";
}

/**
 * Hosts that report up to the end of the range, and hosts that should.
 * @param {Quality} quality
 */
export function hostCounts({ hosts, hosts_silent }) {
  const heard = typeof hosts === "number" ? hosts : hosts.length;
  return { heard, silent: hosts_silent.length, expected: heard + hosts_silent.length };
}

/**
 * The numbers of the strip, in the order they are shown.
 * @param {Quality} quality
 * @param {string} [what] of which there are counts: samples, waits, calls
 * @returns {QualityItem[]}
 */
export function qualityItems(quality, what = "samples") {
  return [lostItem(quality, what), stacksItem(quality, what), truncatedItem(quality, what), unnamedItem(quality), ...namingItems(quality), ...kernelItems(quality), hostsItem(quality)];
}

/**
 * What was never stored is known by host only: a service is not told that it is its own.
 * @param {Quality} quality
 * @param {string} what
 * @returns {QualityItem}
 */
function lostItem({ lost, lost_share, expected, is_of_hosts }, what) {
  const isFine = !isLossGrave(lost_share);
  const count = Object.values(lost).reduce((sum, each) => sum + each, 0);
  const words = isFine
    ? `${formatCount(count)} of ${formatCount(expected)} expected ${what} were lost`
    : `${formatLoss(lost_share)} of the ${what} are missing: ${mainReason(lost)}`;
  const of = is_of_hosts ? "on its hosts, all services together: " : "";
  return { key: "lost", label: is_of_hosts ? "lost on its hosts" : "lost", value: formatLoss(lost_share), isFine, words: of + words };
}

/**
 * Whole stacks. A stack is broken when it was lost, when its outermost frames were not found, and when a frame in it lies in no known
 * file: the usual sign of code built without frame pointers.
 * @param {Quality} quality
 * @param {string} what
 * @returns {QualityItem}
 */
function stacksItem({ stack_lost, stack_lost_share, unknown_share, unwind_stopped_share, whole_share }, what) {
  const broken = unknown_share ?? 0;
  const isLost = stack_lost_share > LIMITS.stackLost;
  const stopped = unwind_stopped_share ?? 0;
  const isBroken = broken > LIMITS.broken;
  const isStopped = stopped > LIMITS.broken;
  const whole = whole_share ?? 1 - stack_lost_share - broken;
  const parts = [];
  const gone = Object.fromEntries(Object.entries(stack_lost).filter(([reason]) => !ONLY_SHORTENED.includes(reason)));
  if (isLost) parts.push(`${formatLoss(stack_lost_share)} of the ${what} lost their stack: ${mainReason(gone)}`);
  if (isBroken) parts.push(`${formatShare(broken)} of the time has a frame of unknown place in its stack (often code without frame pointers)`);
  if (isStopped) parts.push(`${formatShare(stopped)} of the time lacks its outermost frames and stands under [unwind stopped: …]`);
  const words = parts.length > 0 ? parts.join("; ") : `${formatShare(whole)} of the time has its stack from leaf to root`;
  return { key: "stacks", label: "whole stacks", value: formatShare(whole), isFine: !isLost && !isBroken && !isStopped, words };
}

/**
 * @param {Quality} quality
 * @param {string} what
 * @returns {QualityItem}
 */
function truncatedItem({ truncated_share }, what) {
  const isFine = truncated_share <= LIMITS.truncated;
  const words = isFine
    ? "stacks deeper than 127 frames, cut at their root"
    : `${formatLoss(truncated_share)} of the ${what} are deeper than 127 frames and stand under [truncated]`;
  return { key: "truncated", label: "truncated", value: formatLoss(truncated_share), isFine, words };
}

/**
 * @param {Quality} quality
 * @returns {QualityItem}
 */
function unnamedItem({ unnamed_share }) {
  const unnamed = unnamed_share ?? 0;
  const words = `${formatLoss(unnamed)} of the time is in functions without a name; the Symbols view says why`;
  return { key: "unnamed", label: "unnamed", value: formatLoss(unnamed), isFine: unnamed <= LIMITS.unnamed, words };
}

/**
 * Said only while names are being made: they come by themselves.
 * @param {Quality} quality
 * @returns {QualityItem[]}
 */
function namingItems({ naming = 0 }) {
  if (naming === 0) return [];
  const words = `${countOf(naming, "binary", "binaries")} in this picture ${naming === 1 ? "is" : "are"} being read; what has no name yet gets one by itself`;
  return [{ key: "naming", label: "naming", value: `${countOf(naming, "binary", "binaries")}…`, isFine: true, words }];
}

/**
 * Said only where the kernel hides its addresses, and then always: it is for a person to mend.
 * @param {Quality} quality
 * @returns {QualityItem[]}
 */
function kernelItems({ kernel_hidden_share }) {
  const hidden = kernel_hidden_share ?? 0;
  if (hidden === 0) return [];
  const words = `${formatLoss(hidden)} of the time stands under [kernel hidden]: the kernel hides its addresses from the agent. Run the agent as root or with CAP_SYSLOG; where kernel.kptr_restrict is 2, type: sysctl kernel.kptr_restrict=1`;
  return [{ key: "kernel", label: "kernel hidden", value: formatLoss(hidden), isFine: false, words }];
}

/**
 * @param {Quality} quality
 * @returns {QualityItem}
 */
function hostsItem(quality) {
  const { heard, silent, expected } = hostCounts(quality);
  const words =
    silent === 0
      ? `all ${countOf(heard, "host")} reported`
      : `${heard} of ${countOf(expected, "host")} still ${heard === 1 ? "reports" : "report"}; silent: ${listOf(quality.hosts_silent, 3)}`;
  return { key: "hosts", label: "hosts", value: `${heard}/${expected}`, isFine: silent === 0, words };
}

/**
 * @param {readonly string[]} names
 * @param {number} limit
 */
export function listOf(names, limit) {
  const rest = names.length - limit;
  return names.slice(0, limit).join(", ") + (rest > 0 ? ` and ${rest} more` : "");
}
