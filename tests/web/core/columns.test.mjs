// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";

import { answerFromBytes } from "../../../web/core/columns.js";
import { treeFromAnswer } from "../../../web/core/tree.js";
import { answerOf } from "./answers.mjs";

/** As server/http/packed.py writes it: the length of the JSON, the JSON, the columns, all filled up to multiples of 8 bytes. */
function bytesOf(answer, columns) {
  const told = columns.map(([table, name, type, values]) => [table, name, type, values.length]);
  const json = new TextEncoder().encode(JSON.stringify({ ...answer, packed: told }));
  const length = Math.ceil((4 + json.length) / 8) * 8 - 4;
  const head = new Uint8Array(4 + length).fill(0x20);
  new DataView(head.buffer).setUint32(0, length, true);
  head.set(json, 4);
  const bodies = columns.map(([, , , values]) => {
    const body = new Uint8Array(Math.ceil(values.byteLength / 8) * 8);
    body.set(new Uint8Array(values.buffer));
    return body;
  });
  return Uint8Array.from([head, ...bodies].flatMap((each) => [...each])).buffer;
}

test("columns of every type are read from their places", () => {
  const columns = [
    ["nodes", "trimmed", "u1", Uint8Array.of(1, 0, 23)],
    ["nodes", "depth", "i4", Int32Array.of(0, -1, 7)],
    ["functions", "line", "f8", Float64Array.of(2 ** 53, 0.5)],
  ];
  const { packed, ...answer } = answerFromBytes(bytesOf({ unit: "ns é", nodes: { low: [null] }, functions: {} }, columns));
  assert.equal(packed.length, 3);
  assert.deepEqual(answer, {
    unit: "ns é",
    nodes: { low: [null], trimmed: Uint8Array.of(1, 0, 23), depth: Int32Array.of(0, -1, 7) },
    functions: { line: Float64Array.of(2 ** 53, 0.5) },
  });
});

test("a tree is the same from columns and from lists, and columns are not copied", () => {
  const plain = answerOf([[1, "a", 7], [2, "b", 23]]);
  const types = { function: Int32Array, depth: Int32Array, trimmed: Int32Array };
  const columns = Object.entries(plain.nodes).map(([name, list]) => {
    const type = types[name] ?? Float64Array;
    return ["nodes", name, type === Int32Array ? "i4" : "f8", type.from(list)];
  });
  const answer = answerFromBytes(bytesOf({ ...plain, nodes: {} }, columns));
  const tree = treeFromAnswer(answer);
  assert.deepEqual(tree, treeFromAnswer(plain));
  assert.equal(tree.total, answer.nodes.total);
});

test("an answer that is cut is an error, not a picture", () => {
  const whole = bytesOf({ nodes: {} }, [["nodes", "total", "f8", Float64Array.of(1, 2)]]);
  for (const length of [0, 3, 4, 23, whole.byteLength - 8]) assert.throws(() => answerFromBytes(whole.slice(0, length)));
});
