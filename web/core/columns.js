// SPDX-License-Identifier: Apache-2.0
/** Answers of the API whose long columns are not JSON but stand behind it as they lie in memory: see server/http/packed.py. */

export const COLUMNS_TYPE = "application/x-emberwatch-columns";

const ALIGNED_BYTES = 8;
const ARRAYS = { f8: Float64Array, i4: Int32Array, u1: Uint8Array };

/**
 * The answer as JSON would have given it, with typed arrays for its columns; these are views of `bytes`.
 * @param {ArrayBuffer} bytes
 * @returns {any}
 * @throws {RangeError | SyntaxError | TypeError} when it is cut or no such answer
 */
export function answerFromBytes(bytes) {
  const length = new DataView(bytes).getUint32(0, true);
  const answer = JSON.parse(new TextDecoder().decode(new Uint8Array(bytes, 4, length)));
  let at = 4 + length;
  for (const [table, name, type, count] of /** @type {Array<[string, string, keyof ARRAYS, number]>} */ (answer.packed)) {
    const column = new ARRAYS[type](bytes, at, count);
    answer[table][name] = column;
    at += Math.ceil(column.byteLength / ALIGNED_BYTES) * ALIGNED_BYTES;
  }
  return answer;
}
