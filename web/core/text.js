// SPDX-License-Identifier: Apache-2.0
/**
 * Names as people can read them: control characters made visible, long names cut in the middle.
 *
 * Names come from profiles and are hostile until shown: they may hold NUL, escapes, line ends, direction overrides.
 */

// C0 and C1 controls, DEL, line and paragraph separators, direction marks and overrides, lone surrogates.
// eslint-disable-next-line no-control-regex
const UNSAFE = /[\u0000-\u001f\u007f-\u009f\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff\ud800-\udfff]/u;
// eslint-disable-next-line no-control-regex
const UNSAFE_ALL = /[\u0000-\u001f\u007f-\u009f\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff\ud800-\udfff]/gu;

/**
 * The name with every character that would act rather than show replaced by a picture of it (NUL as ␀, U+202E as \u202e).
 * @param {string} name
 * @returns {string}
 */
export function visibleText(name) {
  return UNSAFE.test(name) ? name.replace(UNSAFE_ALL, pictureOf) : name;
}

/**
 * The same of many names. Hardly ever is there anything to replace in any of them, and one look at all is cheaper than one at each.
 * @param {string[]} names
 */
export function visibleTexts(names) {
  return UNSAFE.test(names.join(" ")) ? names.map(visibleText) : names;
}

/** @param {string} character */
function pictureOf(character) {
  const code = character.codePointAt(0) ?? 0;
  if (code < 0x20) return String.fromCharCode(0x2400 + code);
  if (code === 0x7f) return "\u2421";
  if (code >= 0xd800 && code <= 0xdfff) return "\ufffd";
  return `\\u${code.toString(16).padStart(4, "0")}`;
}

// The last component: what stands after the last `::`, `.` or `/`.
const LAST_COMPONENT = /[^:./]+$/;

/**
 * Cut a name to `length` characters, in the middle, so that its last component stays and as much of its start as fits.
 *
 * `net/http.(*conn).serve` in 12 characters is `net/ht…serve`; in 5 it is `serve`, in 4 `ser…`. Arguments go first of all.
 * @param {string} name
 * @param {number} length characters, the ellipsis included
 * @returns {string} "" when there is no room for even two characters
 */
export function cutName(name, length) {
  if (name.length <= length) return name;
  if (length < 2) return "";
  const bare = withoutArguments(name);
  if (bare.length <= length) return bare;
  const last = LAST_COMPONENT.exec(bare)?.[0] ?? bare;
  if (last.length === length) return last;
  if (last.length > length || last === bare) return safeSlice(last, 0, length - 1) + "…";
  const head = safeSlice(bare, 0, length - 1 - last.length);
  return head === "" ? last : `${head}…${last}`;
}

/**
 * `foo(int, int)` is `foo`; `(anonymous namespace)::x` and `(*T).Read` keep their brackets, which do not stand at the end.
 * @param {string} name
 */
function withoutArguments(name) {
  if (!name.endsWith(")")) return name;
  let depth = 0;
  for (let at = name.length - 1; at > 0; at -= 1) {
    if (name[at] === ")") depth += 1;
    else if (name[at] === "(") depth -= 1;
    if (depth === 0) return name.slice(0, at);
  }
  return name;
}

/**
 * A slice that does not split a surrogate pair.
 * @param {string} text
 * @param {number} from
 * @param {number} until
 */
function safeSlice(text, from, until) {
  const isLow = (/** @type {number} */ at) => (text.charCodeAt(at) & 0xfc00) === 0xdc00;
  const start = from > 0 && isLow(from) ? from + 1 : from;
  const end = until < text.length && isLow(until) ? until - 1 : until;
  return text.slice(start, end);
}

/**
 * One of two words by number: `3 hosts`, `1 host`.
 * @param {number} count
 * @param {string} one
 * @param {string} [many]
 */
export function countOf(count, one, many = `${one}s`) {
  return `${count.toLocaleString("en-US")} ${count === 1 ? one : many}`;
}
