// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import test from "node:test";

import { deskRows, holdsText, isOpen, originWords, outcomeOf, qualityWords, whyOf } from "../../../web/core/symbol-words.js";

const remedy = { words: "Upload it.", command: "emberwatch symbols upload app" };
const binary = {
  id: "7f", path: "/opt/app/bin/app", build_id: "9f9f", build_id_kind: "gnu", kind: 1, state: "named", reason: "", quality: "dynamic", why: "stripped",
  remedy, since_s: 7, cpu_ns: 23, unnamed_ns: 7, sources: [], is_queued: false,
};
const mark = { service: "shop", mark: "[jit]", why: "jit", remedy: { words: "", command: "" }, unnamed_ns: 61 };
const rows = deskRows({ binaries: [binary, { ...binary, path: "", kind: 2, why: "", unnamed_ns: 0 }], binaries_total: 2, marks: [mark], pending: 0 });

test("binaries and code without files are rows of one table", () => {
  assert.deepEqual(rows.map((row) => [row.base, row.folder, row.service, row.unnamed_ns]), [
    ["app", "/opt/app/bin", "", 7],
    ["[kernel]", "", "", 0],
    ["[jit]", "", "shop", 61],
  ]);
  assert.equal(new Set(rows.map((row) => row.id)).size, 2, "the id of code without a file is its own");
});

test("a file at the root and a path without a folder", () => {
  const paths = ["/vmlinux", "relative", ""].map((path) => deskRows({ binaries: [{ ...binary, path }], binaries_total: 1, marks: [], pending: 0 })[0]);
  assert.deepEqual(paths.map((row) => [row.base, row.folder]), [["vmlinux", ""], ["relative", ""], ["(no path)", ""]]);
});

test("the filter finds path, build id, service, reason and remedy", () => {
  const found = (text) => rows.map((row) => holdsText(row, text));
  assert.deepEqual(found("OPT/app"), [true, false, false]);
  assert.deepEqual(found("9f9f"), [true, true, false]);
  assert.deepEqual(found("shop"), [false, false, true]);
  assert.deepEqual(found("JIT without"), [false, false, true]);
  assert.deepEqual(found(""), [true, true, true]);
});

test("open is what has time without names, or a reason that can be mended", () => {
  assert.deepEqual(rows.map(isOpen), [true, false, true]);
  assert.equal(isOpen({ ...rows[1], why: "no-debug-data" }), false);
  assert.equal(isOpen({ ...rows[1], why: "malformed" }), true);
});

test("words that a newer server says are shown as they are", () => {
  assert.deepEqual(whyOf("new"), { words: "new", tone: "grey", rank: 3 });
  assert.deepEqual(outcomeOf("new"), { words: "new", tone: "grey" });
  assert.equal(qualityWords("new"), "new");
  assert.equal(originWords("new"), "new");
  assert.equal(outcomeOf("not-found").words, "not there");
});
