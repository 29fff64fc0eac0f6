// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";

import { COLOUR_ROOT, STEPS, contrast } from "../../../web/core/colour.js";
import { treeFromAnswer } from "../../../web/core/tree.js";
import * as waits from "../../../web/core/wait-colour.js";

const FRAME_INK = [0x1c, 0x17, 0x12];
const KERNEL = 7;
const MARK = 8;

/** A stack of functions, outermost first, as the API answers it. */
function stackAnswer(functions, ancestors = []) {
  const strings = ["", ...functions.map(([name]) => name)];
  const column = (value) => functions.map(value);
  const all = (value) => [value, ...functions.map(() => value)];
  return {
    total: 7,
    strings,
    functions: { name: column((_, at) => at + 1), binary: column(() => 0), file: column(() => 0), line: column(() => 0), code: column(([, code]) => code) },
    nodes: { function: [-2, ...column((_, at) => at)], depth: [0, ...column((_, at) => at + 1)], start: all(0), total: all(7), self: all(0), id: all(1), trimmed: all(0) },
    ancestors,
    search: null,
  };
}

const kindOf = (colour) => Math.floor(colour / STEPS);

test("names on frames can be read: contrast of at least 4.5 in both themes", () => {
  for (const theme of ["light", "dark"]) {
    const palette = waits.waitPalette(theme);
    assert.equal(palette.length, COLOUR_ROOT);
    for (const rgb of palette) assert.ok(contrast(rgb, FRAME_INK) >= 4.5, `${theme} ${rgb}`);
  }
});

test("who waits is blue, who ends it is not, on both sides of a separator", () => {
  const tree = waits.colourWaits(treeFromAnswer(stackAnswer([["main", 1], ["wait", KERNEL], ["[woken by]", MARK], ["wake", KERNEL], ["give", 1]])));
  assert.deepEqual(Array.from(tree.colour, kindOf).slice(1), [waits.WAIT_PROGRAM, waits.WAIT_KERNEL, MARK, waits.WAIT_OTHER_KERNEL, waits.WAIT_OTHER]);
  assert.equal(tree.colour[0], COLOUR_ROOT);
});

test("below a separator that was zoomed past, everything is of who ended the wait", () => {
  const ancestors = [["all", 8], ["main", 1], ["[held by]", MARK], ["hold", 1]].map(([name, code]) => ({ name, binary: "", code, id: 1, total: 7 }));
  const tree = waits.colourWaits(treeFromAnswer(stackAnswer([["deeper", 1]], ancestors)));
  assert.equal(kindOf(tree.colour[1]), waits.WAIT_OTHER);
  assert.deepEqual(tree.ancestorColour.slice(1).map(kindOf), [waits.WAIT_PROGRAM, MARK, waits.WAIT_OTHER]);
});
