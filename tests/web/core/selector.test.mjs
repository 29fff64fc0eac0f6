// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";

import { selectorText, shellWord } from "../../../web/core/selector.js";

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
