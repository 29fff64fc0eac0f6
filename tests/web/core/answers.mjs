// SPDX-License-Identifier: Apache-2.0
/** Answers of /api/v1/flamegraph for tests, from an indented drawing of the tree. */

/**
 * Each row is [depth, name, self]; the root is added. Totals and starts follow: children stand before their parent's own time.
 * @param {Array<[number, string, number]>} rows in preorder
 * @param {object} [more] fields to put over the answer's own
 */
export function answerOf(rows, more = {}) {
  const all = [[0, "", 0], ...rows];
  const total = all.map(([, , self]) => self);
  for (let at = all.length - 1; at > 0; at -= 1) {
    let parent = at - 1;
    while (all[parent][0] >= all[at][0]) parent -= 1;
    total[parent] += total[at];
  }
  const start = all.map(() => 0);
  const nextStart = [];
  all.forEach(([depth], at) => {
    start[at] = depth === 0 ? 0 : nextStart[depth];
    nextStart[depth] = start[at] + total[at];
    nextStart[depth + 1] = start[at];
  });
  const names = [...new Set(rows.map(([, name]) => name))].filter((name) => name !== "(trimmed)");
  const functionOf = ([depth, name]) => (depth === 0 ? -2 : name === "(trimmed)" ? -1 : names.indexOf(name));
  const nodes = {
    function: all.map(functionOf),
    depth: all.map(([depth]) => depth),
    start,
    total,
    self: all.map(([, , self]) => self),
    id: all.map((_, at) => at * 7),
    trimmed: all.map(([, name]) => (name === "(trimmed)" ? 23 : 0)),
  };
  const same = names.map((_, at) => at + 1);
  const empty = names.map(() => 0);
  const functions = { name: same, binary: empty, file: empty, line: empty, code: empty };
  return { total: total[0], view_total: total[0], strings: ["", ...names], functions, nodes, search: null, ancestors: [], ...more };
}
