// SPDX-License-Identifier: Apache-2.0
/** What an agent says of its health, as people say it. */

import { countOf } from "./text.js";

/** @type {Readonly<Record<string, string>>} */
const PLAIN = Object.freeze({
  kallsyms_hidden: "the kernel hides its addresses",
  spool_memory_only: "its disk refuses windows: they wait in memory",
  limited: "profiles a part of its host",
});

/** By what stands before the number. @type {Readonly<Record<string, (count: number) => string>>} */
const COUNTED = Object.freeze({
  processes_put_off: (count) =>
    `${countOf(count, "new process", "new processes")} in its last window waited to be read, or ended before: more began than its budget allows`,
  unwind_tables_evicted: (count) => `${countOf(count, "unwind table")} gave way to others`,
  unwind_left_out: (count) => `${countOf(count, "process", "processes")} with too many mappings for exact stacks`,
  unwind_tables_waiting: (count) => `${countOf(count, "unwind table")} without room`,
  unwind_rules_refused: (count) => `${countOf(count, "unwind rule")} without room`,
  unwind_tables_missing: (count) => `${countOf(count, "file")} without an unwind table`,
});

/** @param {string} flag as the agent sends it; a new one is shown as it is */
export function flagWords(flag) {
  const [what, ...rest] = flag.split(":");
  const kind = rest[0] ?? "";
  const said = rest.slice(1).join(":");
  if (what === "kind_off") return `${kind} off: ${said}`;
  if (what === "kind_limited") return `${kind} sees ${said} %`;
  if (what === "kind_timed") return `${kind} counted, timed ${said} % of the time`;
  if (what === "unwind_off") return `stacks by frame pointers only: ${rest.join(":")}`;
  if (Object.hasOwn(COUNTED, what)) return COUNTED[what](Number(kind));
  return Object.hasOwn(PLAIN, flag) ? PLAIN[flag] : flag;
}
