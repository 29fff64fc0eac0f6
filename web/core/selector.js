// SPDX-License-Identifier: Apache-2.0
/** Selectors as the server reads them: `cpu{service="checkout",host=~"web-1|web-2"}`. */

// The characters RE2 gives a meaning to.
const REGEX_META = /[\\.+*?()|[\]{}^$]/g;

/** @param {string} value */
function quoted(value) {
  return `"${value.replace(/\\/g, "\\\\").replace(/"/g, '\\"').replace(/\n/g, "\\n")}"`;
}

/** @param {string} value */
function literal(value) {
  return value.replace(REGEX_META, "\\$&");
}

/**
 * One value is compared for equality, several as a regular expression of literals; none says nothing.
 * @param {string} label
 * @param {readonly string[]} values
 * @returns {string[]} no or one matcher
 */
function matcher(label, values) {
  if (values.length === 0) return [];
  if (values.length === 1) return [`${label}=${quoted(values[0])}`];
  return [`${label}=~${quoted(values.map(literal).join("|"))}`];
}

/**
 * @param {string} kind such as `cpu`
 * @param {Record<string, readonly string[]>} labels values wanted of each label; an empty list wants all
 * @returns {string}
 */
export function selectorText(kind, labels) {
  const matchers = Object.entries(labels).flatMap(([label, values]) => matcher(label, values));
  return `${kind}{${matchers.join(",")}}`;
}

/**
 * A word for a POSIX shell, quoted when it needs to be.
 * @param {string} text
 */
export function shellWord(text) {
  return `'${text.replace(/'/g, "'\\''")}'`;
}

/** One matcher of the kind that selectorText writes; its string runs to the first quote that is not escaped. */
const MATCHER = /^\s*([A-Za-z_][\w.]*)\s*(=~|=)\s*"((?:[^"\\]|\\["\\n])*)"\s*(?:,|$)/;

/**
 * The kind and the values wanted of each label: selectorText backwards; null for a selector that says more than lists of values can.
 * @param {string} text
 * @returns {{kind: string, labels: Record<string, string[]>} | null}
 */
export function labelsOfSelector(text) {
  const whole = /^\s*([A-Za-z_]\w*)\s*(?:\{(.*)\}\s*)?$/s.exec(text);
  if (!whole) return null;
  const labels = /** @type {Record<string, string[]>} */ ({});
  let rest = whole[2] ?? "";
  while (rest.trim() !== "") {
    const found = MATCHER.exec(rest);
    if (!found || Object.hasOwn(labels, found[1])) return null;
    const value = found[3].replace(/\\(.)/gs, (_, character) => (character === "n" ? "\n" : character));
    const values = found[2] === "=" ? [value] : literalsOf(value);
    if (!values) return null;
    labels[found[1]] = values;
    rest = rest.slice(found[0].length);
  }
  return { kind: whole[1], labels };
}

/**
 * The literals of a regular expression that is nothing but a list of them; null for any other.
 * @param {string} pattern
 */
function literalsOf(pattern) {
  const values = pattern.match(/(?:\\.|[^|\\])+/gs) ?? [];
  const plain = values.map((value) => value.replace(/\\(.)/gs, "$1"));
  return plain.map(literal).join("|") === pattern ? plain : null;
}
