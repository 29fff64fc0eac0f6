// SPDX-License-Identifier: Apache-2.0
/** Reads a picture again while names of its binaries are being made, so that a fixed range gets them too. */

const FIRST_MS = 2000;
/** A debug file of a gigabyte takes minutes: the pauses grow. */
const LONGEST_MS = 30_000;

/** @param {() => void} read @returns {{saw: (naming: number | undefined) => void, stop: () => void}} `saw` is told of each answer */
export function makeNameWatch(read) {
  let timer = 0;
  let pause_ms = FIRST_MS;
  const wait = () => {
    timer = window.setTimeout(() => (document.hidden ? wait() : read()), pause_ms);
  };
  return {
    saw(naming = 0) {
      clearTimeout(timer);
      if (naming === 0) {
        pause_ms = FIRST_MS;
        return;
      }
      wait();
      pause_ms = Math.min(LONGEST_MS, pause_ms * 2);
    },
    stop: () => clearTimeout(timer),
  };
}
