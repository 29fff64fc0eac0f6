// SPDX-License-Identifier: Apache-2.0
/** Sends a file to the symbol desk in pieces, and goes on where it stopped when the line breaks. */

import { ApiError, getJson, isCancelled, sendBytes } from "./api.js";

const PIECE_BYTES = 4 << 20;
const ATTEMPTS = 5;
const PAUSE_MS = 1000;

/** @typedef {{received: number, done: boolean, build_id?: string, binaries?: number, known?: boolean}} UploadAnswer */

/**
 * @param {File} file
 * @param {{signal: AbortSignal, onProgress: (share: number) => void}} how
 * @returns {Promise<UploadAnswer>} what the server made of the whole file
 */
export async function uploadFile(file, { signal, onProgress }) {
  const token = newToken();
  let received = 0;
  let failures = 0;
  let isUnsure = false;
  for (;;) {
    try {
      if (isUnsure) received = (await getJson(`symbols/files/${token}`, {}, signal)).received;
      isUnsure = false;
      const piece = file.slice(received, received + PIECE_BYTES);
      const answer = await sendBytes(`symbols/files/${token}`, piece, `bytes ${received}-${received + piece.size - 1}/${file.size}`, signal);
      if (answer.done) return answer;
      failures = 0;
      received = answer.received;
      onProgress(received / file.size);
    } catch (error) {
      const isPassing = error instanceof ApiError && (error.status === 0 || error.status === 503);
      failures += 1;
      if (isCancelled(error) || !isPassing || failures >= ATTEMPTS) throw error;
      await pause(PAUSE_MS * failures, signal);
      isUnsure = true;
    }
  }
}

/** A name for the upload that nobody else has. */
function newToken() {
  return [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

/**
 * @param {number} length_ms
 * @param {AbortSignal} signal
 * @returns {Promise<void>}
 */
function pause(length_ms, signal) {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, length_ms);
    signal.addEventListener("abort", () => {
      clearTimeout(timer);
      reject(new DOMException("cancelled", "AbortError"));
    });
  });
}
