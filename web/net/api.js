// SPDX-License-Identifier: Apache-2.0
/** The API as functions. Every failure is an ApiError that says what failed and what to do; a cancelled request is an AbortError. */

import { COLUMNS_TYPE, answerFromBytes } from "../core/columns.js";
import { frozenKey } from "../core/frozen.js";

/**
 * @typedef {{service: string, cpu_ns: number, cores: number, cores_now: number, share: number, spark: Array<number | null>, version: string,
 *   version_since_s: number | null, versions: number, hosts: number, samples: number, lost_share: number,
 *   whole_share: number | null, unnamed_share: number | null,
 *   deploy: {id: string, words: string, change: number, is_noise: boolean} | null}} ServiceRow
 * @typedef {{from_s: number, until_s: number, step_s: number, services: ServiceRow[],
 *   totals: {cores: number, cores_now: number, hosts: number, samples: number, cpu_ns: number}, agents: {total: number, silent: number}}} ServicesAnswer
 * @typedef {{kind: string, unit: string, from_s: number, until_s: number, step_s: number, times_s: number[], values: Array<number | null>, loss: Array<number | null>}} SeriesAnswer
 * @typedef {{name: string, binary: string, file: string, line: number, code: number, builds?: string[], self: number, total: number,
 *   self_share: number, total_share: number}} TopRow
 * @typedef {{total: number, rows: TopRow[], rows_total: number}} TopAnswer
 * @typedef {{values: Array<{value: string, cpu_ns: number}>}} ValuesAnswer
 * @typedef {{host: string, agent_id: string, version: string, kernel: string, cpus: number, rate_hz: number, first_seen_s: number,
 *   last_seen_s: number, is_silent: boolean, lost: Record<string, number>, lost_share: number, cpu_share: number | null,
 *   bpf_share: number | null, rss_bytes: number | null, map_bytes: number | null, flags: string[]}} AgentRow
 * @typedef {{id: string, service: string, version: string, replaced: string, first_seen_s: number, hosts_done: number,
 *   hosts_total: number, annotation: string | null, is_return: boolean, requests_per_s: {before: number, after: number} | null,
 *   verdict: DeployVerdict | null, compare: {is_canary: boolean, a: DeploySide, b: DeploySide}}} DeployRow
 * @typedef {{words: string, change: number, is_noise: boolean, functions: number, is_final: boolean, made_s: number}} DeployVerdict
 * @typedef {{name: string, binary: string, code: number, a_share: number, b_share: number, a_total: number, b_total: number, change: number,
 *   low: number, high: number, state: "new" | "vanished" | "both", explains: string[], explains_total: number, a_per: number, b_per: number,
 *   a_bars: number[], b_bars: number[]}} ReportRow
 * @typedef {{
 *   sides: Array<{version: string, from_s: number, until_s: number, hosts: number, samples: number, replicates: number}>,
 *   cpu: {measure: string, unit: string, a: number | null, b: number | null, a_replicates: number[], b_replicates: number[],
 *     change: number | null, low: number | null, high: number | null, is_noise: boolean},
 *   series: {from_s: number, until_s: number, step_s: number, before: Array<number | null>, after: Array<number | null>},
 *   rows: ReportRow[], functions: {beyond_noise: number, explained: number, reported: number, compared: number}, notes: string[],
 * }} DeployReport
 * @typedef {{deploy: DeployRow, hosts: Array<{host: string, first_seen_s: number}>, report: DeployReport | null, missing: string}} DeployAnswer
 * @typedef {{id: string, cause: "deploy" | "none", words: string, service: string, function: string, binary: string, at_s: number, before: number,
 *   after: number, change: number, low: number, high: number, explains: string[], deploy_id: string | null, version: string | null,
 *   compare: {a: EventSide, b: EventSide}}} EventRow
 * @typedef {{query: string, from_s: number, until_s: number}} EventSide
 * @typedef {{kind: string, column: string, unit: string, from_s: number, until_s: number, step_s: number, hosts: string[], hosts_total: number,
 *   values: Array<Array<number | null>>}} HostMapAnswer
 * @typedef {import("../core/compare.js").DeploySide} DeploySide
 * @typedef {{name: string, binary: string, code: number, a_share: number, b_share: number, change: number, low: number, high: number,
 *   is_noise: number | boolean, a_total: number, b_total: number, a_self_share: number, b_self_share: number,
 *   state: "new" | "vanished" | "both", explained_by: string | null}} ChangedRow
 * @typedef {{rows: ChangedRow[], a: import("../core/diff-tree.js").DiffSide, b: import("../core/diff-tree.js").DiffSide}} ChangedAnswer
 * @typedef {Record<string, string | number>} Parameters
 */

export class ApiError extends Error {
  /**
   * @param {string} message what failed
   * @param {{hint?: string, status?: number, address?: string, position?: number | null}} [more]
   */
  constructor(message, { hint = "", status = 0, address = "", position = null } = {}) {
    super(message);
    this.name = "ApiError";
    this.hint = hint;
    this.status = status;
    this.address = address;
    this.position = position;
  }
}

/** @param {unknown} error */
export function isCancelled(error) {
  return error instanceof DOMException && error.name === "AbortError";
}

/**
 * @param {string} name such as `flamegraph`
 * @param {Parameters} [parameters] empty ones are left out
 */
export function apiAddress(name, parameters = {}) {
  const query = new URLSearchParams();
  for (const [key, value] of Object.entries(parameters)) {
    if (value !== "") query.set(key, String(value));
  }
  const text = query.toString();
  return `/api/v1/${name}${text ? `?${text}` : ""}`;
}

/** Questions that were asked since `beginRecord`, with how many are still open; null when nobody keeps them. @type {{asked: Set<string>, open: number} | null} */
let record = null;
/** Answers of a shared view by `frozenKey`: nothing else is asked then. @type {ReadonlyMap<string, unknown> | null} */
let frozen = null;

/** Keep what is asked from now on, for a share. */
export function beginRecord() {
  record = { asked: new Set(), open: 0 };
  return record;
}

/** Answer from these alone. @param {Record<string, unknown>} answers by address */
export function freezeAnswers(answers) {
  frozen = new Map(Object.entries(answers).map(([address, answer]) => [frozenKey(address), answer]));
}

/**
 * @param {string} name
 * @param {Parameters} parameters
 * @param {AbortSignal} [signal]
 * @returns {Promise<any>}
 */
export async function getJson(name, parameters, signal) {
  return getAnswer(name, parameters, signal, "application/json");
}

/**
 * The same of a graph: its columns come as typed arrays where the server has them so, else as lists.
 * @param {string} name
 * @param {Parameters} parameters
 * @param {AbortSignal} [signal]
 * @returns {Promise<any>}
 */
export async function getColumns(name, parameters, signal) {
  return getAnswer(name, parameters, signal, `${COLUMNS_TYPE}, application/json`);
}

/**
 * @param {string} name
 * @param {Parameters} parameters
 * @param {AbortSignal | undefined} signal
 * @param {string} accept
 */
async function getAnswer(name, parameters, signal, accept) {
  const address = apiAddress(name, parameters);
  if (frozen) return frozenAnswer(frozen, address);
  const kept = record;
  if (kept) kept.open += 1;
  try {
    const answer = await answerOf(address, { signal, headers: { Accept: accept } });
    kept?.asked.add(address);
    return answer;
  } finally {
    if (kept) kept.open -= 1;
  }
}

/**
 * @param {ReadonlyMap<string, unknown>} answers
 * @param {string} address
 */
function frozenAnswer(answers, address) {
  const answer = answers.get(frozenKey(address));
  if (answer === undefined) throw new ApiError("This is a shared picture: what was not in it cannot be shown.", { hint: "Go back, or ask who shared it.", address });
  return answer;
}

/**
 * @param {string} name
 * @param {Record<string, unknown>} body
 * @param {AbortSignal} [signal]
 * @returns {Promise<any>}
 */
export async function postJson(name, body, signal) {
  return answerOf(apiAddress(name), { method: "POST", signal, headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) });
}

/**
 * @param {string} name
 * @returns {Promise<any>}
 */
export async function removeJson(name) {
  return answerOf(apiAddress(name), { method: "DELETE", headers: { Accept: "application/json" } });
}

/**
 * @param {string} name
 * @param {Blob} body
 * @param {string} contentRange such as `bytes 0-699/1400`
 * @param {AbortSignal} [signal]
 * @returns {Promise<any>}
 */
export async function sendBytes(name, body, contentRange, signal) {
  const headers = { "Content-Type": "application/octet-stream", "Content-Range": contentRange };
  return answerOf(apiAddress(name), { method: "PUT", signal, headers, body });
}

/**
 * @param {string} address
 * @param {RequestInit} request
 */
async function answerOf(address, request) {
  const response = await responseOf(address, request);
  if (!response.ok) throw await errorFromAnswer(response, address);
  try {
    const isPacked = response.headers.get("Content-Type") === COLUMNS_TYPE;
    return isPacked ? answerFromBytes(await response.arrayBuffer()) : await response.json();
  } catch (error) {
    if (isCancelled(error)) throw error;
    throw new ApiError("The answer of the server could not be read.", { hint: "Is this address really Emberwatch?", address });
  }
}

/**
 * @param {string} address
 * @param {RequestInit} request
 */
async function responseOf(address, request) {
  try {
    return await fetch(address, request);
  } catch (error) {
    if (isCancelled(error)) throw error;
    throw new ApiError("The server cannot be reached.", { hint: "Is `emberwatch serve` still running? The page tries again by itself.", address });
  }
}

/**
 * @param {Response} response
 * @param {string} address
 */
async function errorFromAnswer(response, address) {
  const fallback = { message: `The server answered ${response.status} ${response.statusText}`.trim(), hint: "", position: null };
  const told = await response.json().then(
    (body) => body?.error ?? fallback,
    () => fallback,
  );
  return new ApiError(String(told.message ?? fallback.message), {
    hint: String(told.hint ?? ""),
    position: typeof told.position === "number" ? told.position : null,
    status: response.status,
    address,
  });
}
