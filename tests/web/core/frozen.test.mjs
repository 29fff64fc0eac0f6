// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";

import { EXPIRIES, frozenKey, leftWords } from "../../../web/core/frozen.js";

test("the same question has the same key on another screen", () => {
  const key = frozenKey("/api/v1/flamegraph?query=cpu%7B%7D&from=1&width_px=1180");
  assert.equal(key, frozenKey("/api/v1/flamegraph?width_px=340&from=1&query=cpu%7B%7D"));
  assert.notEqual(key, frozenKey("/api/v1/flamegraph?query=cpu%7B%7D&from=2"));
  assert.equal(frozenKey("/api/v1/now"), "/api/v1/now?");
});

test("what is left is told in the unit that fits", () => {
  assert.deepEqual([10, 1800, 86_400, 6.6 * 86_400].map(leftWords), ["1 min left", "30 min left", "24 h left", "7 d left"]);
  assert.ok(EXPIRIES.every(({ seconds }) => seconds >= 60));
});
