// SPDX-License-Identifier: Apache-2.0
/** The latest answers by address, a few of them: going back in a graph is then instant. */

/**
 * @template T
 * @typedef {{get: (key: string) => T | undefined, put: (key: string, answer: T) => void, clear: () => void}} Kept
 */

/**
 * @template T
 * @param {number} limit
 * @returns {Kept<T>}
 */
export function makeAnswers(limit) {
  /** @type {Map<string, T>} */
  const kept = new Map();
  return {
    get(key) {
      const answer = kept.get(key);
      if (answer !== undefined) {
        kept.delete(key);
        kept.set(key, answer);
      }
      return answer;
    },
    put(key, answer) {
      kept.delete(key);
      kept.set(key, answer);
      if (kept.size > limit) kept.delete(/** @type {string} */ (kept.keys().next().value));
    },
    clear: () => kept.clear(),
  };
}
