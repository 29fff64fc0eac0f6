// SPDX-License-Identifier: Apache-2.0
/** Where binaries and debug files are dropped or chosen, and how far each is. */

import { visibleText } from "../core/text.js";
import { formatBytes } from "../core/units.js";
import { ApiError, isCancelled } from "../net/api.js";
import { uploadFile } from "../net/upload.js";
import { element, icon } from "./dom.js";
import { badge } from "./parts.js";

/**
 * @param {{onDone: () => void, signal: AbortSignal}} actions `onDone` when a file has been taken; `signal` ends all of it
 * @returns {{root: HTMLElement}}
 */
export function makeSymbolUpload({ onDone, signal }) {
  const list = element("ul", { class: "uploads", "aria-live": "polite" });
  const input = element("input", { type: "file", multiple: true, class: "visually-hidden", tabindex: "-1", "aria-label": "Files to upload", onchange: () => take(input.files) });
  const choose = element("button", { class: "button", type: "button", onclick: () => input.click() }, icon("download"), "Choose files");
  const words = element("p", {}, element("strong", {}, "Drop binaries or debug files here."), element("span", { class: "is-quiet" }, " They are matched by what stands in them; frames of the past get their names too."));
  const root = element("div", { class: "card drop" }, element("div", { class: "drop-head" }, words, choose, input), list);
  /** One after the other: a line that is shared is no faster. */
  let queue = Promise.resolve();

  const take = (/** @type {FileList | null | undefined} */ files) => {
    for (const file of files ?? []) {
      const item = uploadItem(file);
      list.prepend(item.root);
      queue = queue.then(() => send(file, item, { onDone, signal }));
    }
    input.value = "";
  };
  watchDrops(root, take, signal);
  return { root };
}

/**
 * Files may be dropped anywhere on the page.
 * @param {HTMLElement} root gets the class `is-over` while files hang over the page
 * @param {(files: FileList | null | undefined) => void} take
 * @param {AbortSignal} signal
 */
function watchDrops(root, take, signal) {
  const holdsFiles = (/** @type {DragEvent} */ event) => [...(event.dataTransfer?.types ?? [])].includes("Files");
  document.addEventListener("dragover", (event) => {
    if (!holdsFiles(event)) return;
    event.preventDefault();
    root.classList.add("is-over");
  }, { signal });
  document.addEventListener("dragleave", (event) => {
    if (event.relatedTarget === null) root.classList.remove("is-over");
  }, { signal });
  document.addEventListener("drop", (event) => {
    root.classList.remove("is-over");
    if (!holdsFiles(event)) return;
    event.preventDefault();
    take(event.dataTransfer?.files);
  }, { signal });
}

/**
 * @param {File} file
 * @param {ReturnType<typeof uploadItem>} item
 * @param {{onDone: () => void, signal: AbortSignal}} actions
 */
async function send(file, item, { onDone, signal }) {
  try {
    if (file.size === 0) throw new ApiError("the file is empty");
    const answer = await uploadFile(file, { signal, onProgress: item.progress });
    const runs = answer.binaries ? "names what runs" : "kept for the first host that runs it";
    item.end(answer.known ? "known" : "taken", answer.known ? "grey" : "green", answer.known ? "a file that tells as much is here already" : runs);
    onDone();
  } catch (error) {
    if (!isCancelled(error)) item.end("refused", "red", error instanceof Error ? error.message : String(error));
  }
}

/** @param {File} file */
function uploadItem(file) {
  const state = element("span", {}, badge("waiting", "grey"));
  const bar = element("progress", { class: "upload-bar", max: "1", value: "0", "aria-label": `Upload of ${file.name}` });
  const said = element("span", { class: "upload-said is-quiet" }, formatBytes(file.size));
  const root = element("li", { class: "upload" }, state, element("span", { class: "name upload-name" }, visibleText(file.name)), bar, said);
  return {
    root,
    progress: (/** @type {number} */ share) => {
      state.replaceChildren(badge("sending", "grey"));
      bar.value = share;
      said.textContent = `${formatBytes(share * file.size)} of ${formatBytes(file.size)}`;
    },
    end: (/** @type {string} */ words, /** @type {"grey" | "green" | "red"} */ tone, /** @type {string} */ text) => {
      state.replaceChildren(badge(words, tone));
      bar.remove();
      said.textContent = text;
    },
  };
}
