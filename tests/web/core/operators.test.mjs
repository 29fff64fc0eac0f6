// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";
import { NO_OPERATORS, exactly, operatorOptions, operatorParameters, operatorWords, operatorsFromQuery, withFrames } from "../../../web/core/operators.js";

const query = (/** @type {Record<string, string>} */ given) => (/** @type {string} */ name, /** @type {string} */ fallback) => given[name] ?? fallback;

test("nothing is asked for when nothing is set", () => {
  assert.ok(Object.values(operatorParameters(NO_OPERATORS)).every((value) => value === ""));
  assert.deepEqual(operatorsFromQuery(query({})), NO_OPERATORS);
});

test("parameters and state are two ways of one thing", () => {
  const state = { ...NO_OPERATORS, focus: "=a", ignore: "b", callers: "~c", by: /** @type {const} */ ("package"), group: "host", hideKernel: true, collapse: true, invert: true };
  const asked = operatorParameters(state);
  assert.deepEqual(asked, { focus: "=a", ignore: "b", callers: "~c", callees: "", by: "package", group: "host", hide_kernel: "1", collapse: "1", invert: "1" });
  assert.deepEqual(operatorsFromQuery(query(asked)), state);
});

test("the same question in a terminal has the same operators", () => {
  const state = { ...NO_OPERATORS, focus: "=it's", by: /** @type {const} */ ("line"), group: "host", hideKernel: true };
  assert.equal(operatorOptions(state), " --focus '=it'\\''s' --by 'line' --group 'host' --hide-kernel");
  assert.equal(operatorOptions(NO_OPERATORS), "");
});

test("what is unknown in an address is ignored", () => {
  assert.deepEqual(operatorsFromQuery(query({ by: "planet", group: "none", invert: "yes" })), NO_OPERATORS);
});

test("callers and callees exclude one another, and the zoom is let go", () => {
  assert.deepEqual(withFrames("callers", exactly("f")), { callees: "", callers: "=f", at: "" });
  assert.deepEqual(withFrames("callees", "f"), { callers: "", callees: "f", at: "" });
  assert.deepEqual(withFrames("focus", ""), { focus: "", at: "" });
});

test("operators are said in words", () => {
  assert.equal(operatorWords("focus", "=json::parse"), "only with json::parse");
  assert.equal(operatorWords("ignore", "~^x$"), "without /^x$/");
  assert.equal(operatorWords("callees", "parse"), "called by …parse…");
});
