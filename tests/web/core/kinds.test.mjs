// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";

import * as kinds from "../../../web/core/kinds.js";

const S = 1e9;
const answer = {
  kind: "time",
  from_s: 0,
  until_s: 25,
  step_s: 10,
  times_s: [0, 10, 20],
  columns: [
    { name: "switches", unit: "count", merge: "sum", values: [7, null, 23] },
    { name: "poll_ns", unit: "ns", merge: "sum", values: [60 * S, null, 30 * S] },
    { name: "cpu_ns", unit: "ns", merge: "sum", values: [20 * S, null, 10 * S] },
    { name: "disk_ns", unit: "ns", merge: "sum", values: [0, null, 0] },
  ],
};

test("every kind has its tab, and what is not known stands under the first", () => {
  assert.deepEqual(["cpu", "offcpu", "runqueue", "time", "lock", "syscall_stack", "tcp", "tcp_stack", "lock_hold", "later"].map(kinds.tabOfKind), ["cpu", "offcpu", "offcpu", "offcpu", "lock", "syscall", "tcp", "tcp", "lock", "cpu"]);
});

test("layers are thread-seconds per second, in the order they are stacked; the last slot may be cut", () => {
  const layers = kinds.layersOf(answer, { isIdleShown: true });
  assert.deepEqual(layers.map(({ spent, rates, total_ns }) => [spent.key, rates, total_ns / S]), [
    ["cpu", [2, null, 2], 30],
    ["poll", [6, null, 6], 90],
  ]);
});

test("waiting for work is left out when it is hidden, and its share said", () => {
  assert.deepEqual(kinds.layersOf(answer, { isIdleShown: false }).map(({ spent }) => spent.key), ["cpu"]);
  assert.equal(kinds.idleShareOf(answer), 0.75);
  assert.equal(kinds.idleShareOf({ ...answer, columns: [] }), 0);
});

test("what was throttled and stolen is said where there is any", () => {
  const of = (name, ...values) => ({ name, unit: "ns", merge: "sum", values });
  assert.equal(kinds.withheldWords(answer), "");
  assert.equal(kinds.withheldWords({ ...answer, columns: [...answer.columns, of("throttled_ns", 0, null, 0), of("steal_ns", 0.3 * S, null, 0.1 * S)] }), "stolen 400 ms");
  assert.equal(kinds.withheldWords({ ...answer, columns: [of("steal_ns", 7 * S, null, 0), of("throttled_ns", 3 * S, null, 0.2 * S)] }), "throttled 3.2 s, stolen 7 s");
});

test("a part leads to the graph it is made of", () => {
  const of = (key) => kinds.stateOfSpent(kinds.SPENT.find((spent) => spent.key === key));
  assert.equal(of("cpu").tab, "cpu");
  assert.equal(of("runnable").tab, "runqueue");
  assert.deepEqual([of("lock").tab, of("lock").waits, of("lock").idle], ["offcpu", ["lock"], "hide"]);
  assert.deepEqual([of("poll").waits, of("poll").idle], [["poll"], "show"]);
});

test("of waits it is known how much nothing could interrupt", () => {
  const of = (name, ...values) => ({ name, unit: "ns", merge: "sum", values });
  const answer = { kind: "offcpu", from_s: 0, until_s: 30, step_s: 10, times_s: [0, 10, 20], columns: [of("count", 7, 2, 3), of("ns", 3 * S, null, S)] };
  assert.equal(kinds.uninterruptibleShareOf(answer), 0);
  assert.equal(kinds.uninterruptibleShareOf({ ...answer, columns: [...answer.columns, of("uninterruptible_ns", S, null, 0)] }), 0.25);
  assert.equal(kinds.uninterruptibleShareOf({ ...answer, columns: [] }), 0);
});

test("of threads it is known how much of their switches was seen", () => {
  const of = (name, ...values) => ({ name, unit: "count", merge: "sum", values });
  const answer = { kind: "time", from_s: 0, until_s: 20, step_s: 10, times_s: [0, 10], columns: [of("switches", 700, 300)] };
  assert.equal(kinds.seenShareOf(answer), 1);
  assert.equal(kinds.seenShareOf({ ...answer, columns: [...answer.columns, of("observed", 40, 30)] }), 0.07);
  assert.equal(kinds.seenShareOf({ ...answer, columns: [...answer.columns, of("observed", 0, 30)] }), 0.1);
});

test("separators are known by name", () => {
  assert.deepEqual(["[woken by]", "[held by]", "[truncated]", "main"].map(kinds.isSeparator), [true, true, false, false]);
});

test("a time is said in the words of its kind", () => {
  assert.deepEqual(['cpu{a="b"}', " offcpu", "lock{}", "later{}"].map(kinds.spentWords), ["of CPU", "waited", "waited for locks", "in all"]);
});

test("what agents say of a kind is told by reason, and the most limited first", () => {
  const agents = [
    { host: "a", flags: ["kind_limited:syscall:52", "kind_limited:syscall_stack:40", "kallsyms_hidden"] },
    { host: "b", flags: ["kind_off:lock:no contention_begin: needs 5.19", "kind_limited:syscall:7"] },
    { host: "d", flags: ["kind_timed:syscall:3"] },
    { host: "c", flags: ["kind_off:lock:no contention_begin: needs 5.19", "kind_off:tcp:no BTF"] },
  ];
  const calls = kinds.kindState(agents, ["syscall", "syscall_stack"]);
  const limited = [{ host: "b", percent: 7 }, { host: "a", percent: 40 }];
  assert.deepEqual(calls, { off: [], limited, timed: [{ host: "d", percent: 3 }] });
  assert.deepEqual(kinds.kindStateWords(calls), [
    "To spare the host, 2 hosts see 7 % of what happens; counts and times are scaled to all of it",
    "To spare the host, d counts everything and takes times for 3 % of the time; they stand for all",
  ]);
  assert.deepEqual(kinds.kindStateWords(kinds.kindState(agents, ["lock"])), ["Off on 2 hosts: no contention_begin: needs 5.19"]);
  assert.deepEqual(kinds.kindStateWords(kinds.kindState(agents, ["tcp"])), ["Off on c: no BTF"]);
  assert.deepEqual(kinds.kindStateWords(kinds.kindState(agents, ["cpu"])), []);
});
