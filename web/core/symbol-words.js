// SPDX-License-Identifier: Apache-2.0
/** What the symbol desk says of binaries: words and tones for the server's reasons, and rows that can be sorted and searched. */

/**
 * @typedef {"amber" | "grey" | "green" | "red"} Tone
 * @typedef {{origin: string, place: string, outcome: string, reason: string, quality: string, at_s: number}} SourceRow
 * @typedef {{id: string, path: string, build_id: string, build_id_kind: string, kind: number, state: string, reason: string,
 *   quality: string, why: string, remedy: {words: string, command: string}, since_s: number, cpu_ns: number, unnamed_ns: number,
 *   sources: SourceRow[], is_queued: boolean}} BinaryRow
 * @typedef {{service: string, mark: string, why: string, remedy: {words: string, command: string}, unnamed_ns: number}} MarkRow
 * @typedef {{binaries: BinaryRow[], binaries_total: number, marks: MarkRow[], pending: number}} SymbolsAnswer
 * @typedef {BinaryRow & {base: string, folder: string, service: string}} DeskRow `service` only for code that belongs to no file
 */

/** @type {Readonly<Record<string, {words: string, tone: Tone, rank: number}>>} */
const WHY = Object.freeze({
  malformed: { words: "malformed", tone: "red", rank: 9 },
  mismatch: { words: "other build", tone: "red", rank: 8 },
  limit: { words: "too large", tone: "red", rank: 7 },
  stripped: { words: "stripped", tone: "amber", rank: 6 },
  jit: { words: "JIT without map", tone: "amber", rank: 5 },
  hidden: { words: "kernel hides it", tone: "amber", rank: 5 },
  "not-asked": { words: "no identity", tone: "amber", rank: 4 },
  waiting: { words: "waiting", tone: "grey", rank: 3 },
  reading: { words: "being read", tone: "grey", rank: 2 },
  "no-debug-data": { words: "no lines", tone: "grey", rank: 1 },
  "": { words: "complete", tone: "green", rank: 0 },
});

/** @type {Readonly<Record<string, string>>} */
const QUALITY = Object.freeze({
  dwarf: "functions, inlined calls, lines",
  full: "functions",
  mini: "functions, from .gnu_debugdata",
  dynamic: "exported functions only",
  empty: "none",
  "": "none",
});

/** @type {Readonly<Record<string, string>>} */
const ORIGIN = Object.freeze({
  file: "The binary on the server's host",
  "debug-root": "Debug file on the server's host",
  agent: "Sent by an agent",
  upload: "Uploaded",
  debuginfod: "debuginfod",
  common: "Common file of dwz",
  split: "Split debug data (.dwo, .dwp)",
});

/** @type {Readonly<Record<string, {words: string, tone: Tone}>>} */
const OUTCOME = Object.freeze({
  ok: { words: "read", tone: "green" },
  "not-found": { words: "not there", tone: "grey" },
  mismatch: { words: "other build", tone: "red" },
  malformed: { words: "malformed", tone: "red" },
  limit: { words: "too large", tone: "red" },
  unsupported: { words: "not usable", tone: "amber" },
  unreachable: { words: "no answer", tone: "amber" },
});

/** What binaries without a path are, by the proto's BinaryKind. @type {Readonly<Record<number, string>>} */
const KIND = Object.freeze({ 2: "[kernel]", 3: "[kernel module]", 4: "[vdso]" });

/** @param {string} why */
export function whyOf(why) {
  return WHY[why] ?? { words: why, tone: /** @type {const} */ ("grey"), rank: 3 };
}

/** @param {string} quality */
export function qualityWords(quality) {
  return QUALITY[quality] ?? quality;
}

/** @param {string} origin */
export function originWords(origin) {
  return ORIGIN[origin] ?? origin;
}

/** @param {string} outcome */
export function outcomeOf(outcome) {
  return OUTCOME[outcome] ?? { words: outcome, tone: /** @type {const} */ ("grey") };
}

/**
 * Binaries, and code that belongs to no file, as rows of one table.
 * @param {SymbolsAnswer} answer
 * @returns {DeskRow[]}
 */
export function deskRows({ binaries, marks }) {
  const files = binaries.map((row) => {
    const cut = row.path.lastIndexOf("/");
    return { ...row, base: row.path.slice(cut + 1) || KIND[row.kind] || "(no path)", folder: cut > 0 ? row.path.slice(0, cut) : "", service: "" };
  });
  const others = marks.map((row) => ({
    ...row, id: `${row.service} ${row.mark}`, base: row.mark, folder: "", path: "", build_id: "", build_id_kind: "none", kind: 0, state: "none",
    reason: "", quality: "", since_s: 0, cpu_ns: row.unnamed_ns, sources: [], is_queued: false,
  }));
  return [...files, ...others];
}

/**
 * @param {DeskRow} row
 * @param {string} wanted
 */
export function holdsText(row, wanted) {
  const text = wanted.toLowerCase();
  return [row.path, row.base, row.service, row.build_id, whyOf(row.why).words, row.remedy.command].some((each) => each.toLowerCase().includes(text));
}

/** Whether something can be done for the names of a binary. @param {DeskRow} row */
export function isOpen(row) {
  return row.unnamed_ns > 0 || whyOf(row.why).rank > 1;
}
