// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";

import { flagWords } from "../../../web/core/flag-words.js";

test("an agent's flags are said in words", () => {
  assert.equal(flagWords("kind_off:lock:no tracepoint: contention_begin"), "lock off: no tracepoint: contention_begin");
  assert.equal(flagWords("kind_limited:offcpu:20"), "offcpu sees 20 %");
  assert.equal(flagWords("kind_timed:syscall:3"), "syscall counted, timed 3 % of the time");
  assert.match(flagWords("processes_put_off:23"), /^23 new processes in its last window waited to be read/);
  assert.match(flagWords("processes_put_off:1"), /^1 new process in/);
  assert.equal(flagWords("unwind_tables_missing:7"), "7 files without an unwind table");
  assert.equal(flagWords("unwind_left_out:1"), "1 process with too many mappings for exact stacks");
  assert.equal(flagWords("unwind_off:locks up every CPU: a lock"), "stacks by frame pointers only: locks up every CPU: a lock");
  assert.equal(flagWords("kallsyms_hidden"), "the kernel hides its addresses");
});

test("a flag of a newer agent is shown as it is", () => {
  assert.equal(flagWords("moon_full:3"), "moon_full:3");
  assert.equal(flagWords("toString"), "toString");
});
