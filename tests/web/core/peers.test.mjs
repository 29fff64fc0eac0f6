// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";

import * as peers from "../../../web/core/peers.js";

const column = (name, values) => ({ name, unit: "count", merge: "sum", values });
const answer = { from_s: 0, until_s: 25, step_s: 10, times_s: [0, 10, 20], columns: [column("segments_out", [1000, null, 0]), column("retransmits", [23, null, 0]), column("bytes_out", [700, null, 700])] };

test("an object says who opened and who stands at the other end", () => {
  assert.deepEqual(peers.peerOfObject("out 10.0.0.7:5432"), { isOut: true, address: "10.0.0.7:5432" });
  assert.deepEqual(peers.peerOfObject("in :8080"), { isOut: false, address: ":8080" });
  assert.deepEqual(peers.peerOfObject("out other"), { isOut: true, address: "other" });
});

test("a share of nothing sent is not known", () => {
  assert.equal(peers.retransmitShare({ segments_out: 1000, retransmits: 23 }), 0.023);
  assert.equal(peers.retransmitShare({ segments_out: 1000 }), 0);
  assert.equal(peers.retransmitShare({ retransmits: 7 }), null);
});

test("over time: gaps stay gaps, a cut slot counts by its length, an absent column is zero", () => {
  assert.deepEqual(peers.retransmitsOverTime(answer), [0.023, null, 0]);
  assert.deepEqual(peers.ratesOf(answer, "bytes_out"), [70, null, 140]);
  assert.deepEqual(peers.ratesOf(answer, "bytes_in"), [0, 0, 0]);
  assert.equal(peers.formatRate(2048), "2 KiB/s");
});
