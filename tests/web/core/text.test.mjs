// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";

import { countOf, cutName, visibleText, visibleTexts } from "../../../web/core/text.js";

test("control characters are shown, not obeyed", () => {
  assert.equal(visibleText("class@anonymous\u0000/srv/x.php:3"), "class@anonymous␀/srv/x.php:3");
  assert.equal(visibleText("\u001b[31mred"), "␛[31mred");
  assert.equal(visibleText("a\nb\tc\u007f"), "a␊b␉c␡");
  assert.equal(visibleText("right\u202eto left"), "right\\u202eto left");
  assert.equal(visibleText("line\u2028end"), "line\\u2028end");
});

test("lone halves of a pair become the replacement character, whole pairs stay", () => {
  assert.equal(visibleText("a\ud800b"), "a\ufffdb");
  assert.equal(visibleText("a\u{1f525}b"), "a\u{1f525}b");
});

test("ordinary names are returned as they are", () => {
  for (const name of ["A<B>&C", "</script>", "(anonymous namespace)::foo(int, int)", "<[u64; 3] as arr::T>::go", "größe", "函数"]) {
    assert.equal(visibleText(name), name);
  }
});

test("a name that fits is not cut", () => {
  assert.equal(cutName("main", 4), "main");
  assert.equal(cutName("", 0), "");
});

test("a cut keeps the last component and as much of the start as fits", () => {
  assert.equal(cutName("net/http.(*conn).serve", 12), "net/ht…serve");
  assert.equal(cutName("json::Value::find", 11), "json::…find");
});

test("arguments go first", () => {
  assert.equal(cutName("json::parse(std::string_view)", 15), "json::parse");
  assert.equal(cutName("(anonymous namespace)::foo(int, int)", 26), "(anonymous namespace)::foo");
});

test("with little room the last component stands alone, then its beginning", () => {
  assert.equal(cutName("http::Server::serve", 5), "serve");
  assert.equal(cutName("http::Server::serve", 6), "serve");
  assert.equal(cutName("http::Server::serve", 4), "ser…");
  assert.equal(cutName("http::Server::serve", 2), "s…");
});

test("there is no name in no room", () => {
  assert.equal(cutName("serve", 1), "");
  assert.equal(cutName("serve", 0), "");
  assert.equal(cutName("serve", -3), "");
});

test("a cut does not split a pair", () => {
  assert.equal(cutName("\u{1f525}\u{1f525}\u{1f525}\u{1f525}", 4), "\u{1f525}…");
});

test("a cut is never longer than its room", () => {
  const names = ["a::b::c(d)", "x".repeat(40), "net/http.(*liveSwitchReader).Read", "()", "f()", "a/b/c/d.e::f", "::::", "...."];
  for (const name of names) {
    for (let length = 0; length < 45; length += 1) assert.ok(cutName(name, length).length <= Math.max(length, 0), `${name} in ${length}`);
  }
});

test("counts carry their noun", () => {
  assert.equal(countOf(1, "host"), "1 host");
  assert.equal(countOf(1234, "host"), "1,234 hosts");
});

test("a name cut at any width is no longer than that, and no character of it is halved", () => {
  for (const name of ["Collection.map<A>(reusing:…)", "A<B>&C::\u{1f525}::fire\u{1f525}fire(int)"]) {
    for (let width = 1; width <= 40; width += 1) {
      const cut = cutName(name, width);
      assert.ok(cut.length <= width, `${width}: ${cut}`);
      assert.doesNotMatch(cut, /[\ud800-\udfff]/u, `${width}: ${cut}`);
      assert.equal(cut.includes("&gt;"), false);
    }
  }
});

test("many names are made visible as each of them is", () => {
  const plain = ["main", "naïve", ""];
  assert.equal(visibleTexts(plain), plain);
  assert.deepEqual(visibleTexts(["main", "a\u0000b", "\ud800", "\udc00"]), ["main", "a␀b", "\ufffd", "\ufffd"]);
});
