// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";

import { DEFAULT_STATE, addressFromState, stateFromAddress, stateOfComparison, stateOfView } from "../../../web/core/route.js";

const stateOf = (address) => stateFromAddress(...address.split(/(?=\?)/).concat("").slice(0, 2));

test("defaults are not in the address", () => {
  assert.deepEqual(stateFromAddress("/", ""), DEFAULT_STATE);
  assert.equal(addressFromState(DEFAULT_STATE), "/");
});

test("everything of a view survives the way through its address", () => {
  const state = {
    ...DEFAULT_STATE,
    view: "service",
    service: "a/b c?</script>",
    from: "1780000000",
    until: "1780000900.5",
    live: false,
    hosts: ["web-1", "web,2"],
    versions: ["2.4.1"],
    at: "9007199254740991",
    search: "json::parse & x",
    mode: "regex",
    sort: "-total",
    shown: "table",
    invert: true,
    by: "line",
    group: "thread",
    waits: ["lock", "disk"],
    idle: "show",
    column: "uninterruptible_ns",
    stacks: "both",
    object: "out 10.0.0.7:5432",
    buckets: "connect",
  };
  assert.deepEqual(stateOf(addressFromState(state)), state);
});

test("holding still is part of the address, but only where following is possible", () => {
  assert.equal(addressFromState({ ...DEFAULT_STATE, live: false }), "/?live=0");
  assert.equal(stateOf("/?from=1780000000&until=1780000900").live, false);
});

test("what makes no sense in an address is left out", () => {
  const state = stateOf("/service/checkout?at=../../etc&shown=sideways&mode=sql&invert=yes&unknown=1");
  assert.equal(state.at, "");
  assert.equal(state.shown, "both");
  assert.equal(state.mode, "text");
  assert.equal(state.invert, false);
});

test("unknown paths and broken escapes are told apart from views", () => {
  assert.equal(stateOf("/nothing").view, "unknown");
  assert.equal(stateOf("/service/%E0%A4%A").view, "unknown");
  assert.equal(stateOf("/hosts").view, "hosts");
});

test("another view keeps the range and nothing else", () => {
  const state = { ...stateOf("/service/a?from=-7h&search=x&at=23"), live: false };
  assert.equal(addressFromState(stateOfView(state, "hosts")), "/hosts?from=-7h&live=0");
});

const SIDES = { a: 'cpu{service="a&b"}', aFrom: "1000", aUntil: "1900", b: "cpu{}", bFrom: "-15m", bUntil: "now", shape: "union" };

test("both sides of a comparison are in its address", () => {
  const state = { ...stateOfComparison(stateOf("/service/a?from=-7h&search=x"), SIDES), at: "23", search: "json", sort: "-change" };
  const address = addressFromState(state);
  assert.match(address, /^\/compare\?a=cpu%7Bservice%3D%22a%26b%22%7D&a_from=1000&a_until=1900&b=cpu%7B%7D&b_from=-15m&b_until=now&shape=union&from=-7h&at=23/);
  assert.deepEqual(stateOf(address), state);
});

test("sides belong to comparisons alone", () => {
  assert.equal(stateOf("/service/x?a=cpu{}&a_from=7&shape=a").a, "");
  assert.equal(stateOf("/compare?shape=round").shape, "b");
  assert.equal(addressFromState(stateOfView({ ...DEFAULT_STATE, ...SIDES, view: "compare" }, "hosts")), "/hosts");
});

test("deploys begin with a week, and leave the range of other views alone", () => {
  assert.equal(stateOf("/deploys").from, "-7d");
  assert.equal(addressFromState(stateOf("/deploys")), "/deploys");
  assert.equal(addressFromState(stateOf("/deploys?from=-15m")), "/deploys?from=-15m");
  assert.equal(addressFromState(stateOfView(stateOf("/?from=-1h"), "deploys")), "/deploys");
  assert.equal(addressFromState(stateOfView(stateOf("/deploys?from=-1d"), "fleet")), "/");
});

test("a deploy, and the hosts of a service, have addresses of their own", () => {
  const deploy = stateOf("/deploys/0123abcd");
  assert.deepEqual([deploy.view, deploy.id, deploy.from, addressFromState(deploy)], ["deploy", "0123abcd", "-7d", "/deploys/0123abcd"]);
  assert.equal(stateOf("/deploys/../x").view, "unknown");
  const heat = { ...DEFAULT_STATE, view: "heat", service: "a/b", boxes: ["1-2~web-1", "3-4~web,2"] };
  assert.deepEqual(stateOf(addressFromState(heat)), heat);
  assert.equal(stateOf("/heat/a?box=1&box=2&box=3").boxes.length, 2);
  assert.deepEqual(stateOf("/service/a?box=1").boxes, []);
});
