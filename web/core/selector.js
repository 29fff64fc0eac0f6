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
