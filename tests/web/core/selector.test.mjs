// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";

import { labelsOfSelector, selectorText, shellWord } from "../../../web/core/selector.js";

test("one value is compared, several are alternatives, none says nothing", () => {
  assert.equal(selectorText("cpu", {}), "cpu{}");
  assert.equal(selectorText("cpu", { service: ["checkout"], host: [] }), 'cpu{service="checkout"}');
  assert.equal(selectorText("cpu", { service: ["a"], host: ["web-1", "web-2"] }), 'cpu{service="a",host=~"web-1|web-2"}');
});

test("values are quoted, and literal inside an alternative", () => {
  assert.equal(selectorText("cpu", { service: ['a"b\\c\nd'] }), 'cpu{service="a\\"b\\\\c\\nd"}');
  assert.equal(selectorText("cpu", { version: ["2.4.1", "(x)"] }), 'cpu{version=~"2\\\\.4\\\\.1|\\\\(x\\\\)"}');
});

test("a shell sees one word", () => {
  assert.equal(shellWord(`cpu{service="it's"}`), `'cpu{service="it'\\''s"}'`);
});

test("what was written is read again", () => {
  const cases = [
    { service: ["checkout"] },
    { service: ['a"b\\c\nd'], host: ["web-1", "web-2"] },
    { version: ["2.4.1", "a|b", "x+y", "(z)", "\\"] },
    { service: ["a, b=\"c\"}"] },
    {},
  ];
  for (const labels of cases) assert.deepEqual(labelsOfSelector(selectorText("cpu", labels)), { kind: "cpu", labels });
});

test("a selector that says more than lists of values is left as it is", () => {
  for (const text of ['cpu{host!="a"}', 'cpu{host=~"web-.*"}', 'cpu{host="a",host="b"}', 'cpu{host="a"', "cpu{host=`a`}", "cpu{x}", "", 'cpu{a="\\x"}']) {
    assert.equal(labelsOfSelector(text), null, text);
  }
  assert.deepEqual(labelsOfSelector("cpu"), { kind: "cpu", labels: {} });
  assert.deepEqual(labelsOfSelector(' cpu { host = "a" , } '), { kind: "cpu", labels: { host: ["a"] } });
});
