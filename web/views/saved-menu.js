// SPDX-License-Identifier: Apache-2.0
/** Saved views, and shares: this view under a name, or as a link that shows what is on screen until it expires. */

import { EXPIRIES, leftWords } from "../core/frozen.js";
import { absoluteRange, isRelative, resolveRange } from "../core/range.js";
import { addressFromState, stateFromAddress } from "../core/route.js";
import { visibleText } from "../core/text.js";
import { ApiError, beginRecord, getJson, postJson, removeJson } from "../net/api.js";
import { copyText, element, fill, icon, toast } from "./dom.js";
import { makePopover } from "./popover.js";

/** @typedef {import("../state/store.js").Store} Store */

const QUIET_MS = 400;
const LONGEST_MS = 30_000;

/**
 * @param {Store} store
 * @param {() => void} reload shows the view anew, so that all it asks can be kept
 * @returns {{root: HTMLElement}}
 */
export function makeSavedMenu(store, reload) {
  const views = element("ul", { class: "saved-list" });
  const shares = element("ul", { class: "saved-list" });
  const problem = element("p", { class: "saved-problem", role: "alert", hidden: true });
  const name = element("input", { class: "input", type: "text", maxlength: "120", placeholder: "Name of this view", "aria-label": "Name of this view", required: true });
  const expiry = element("select", { class: "input", "aria-label": "How long the link lasts" },
    ...EXPIRIES.map(({ label, seconds }) => element("option", { value: seconds, selected: seconds === 86_400 }, label)));
  const shareButton = element("button", { class: "button is-primary", type: "submit" }, "Make a link");
  const attempt = async (/** @type {() => Promise<void>} */ act) => {
    problem.hidden = true;
    try {
      await act();
    } catch (error) {
      problem.textContent = error instanceof ApiError ? `${error.message} ${error.hint}`.trim() : String(error);
      problem.hidden = false;
    }
  };
  const save = () => attempt(async () => {
    await postJson("views", { name: name.value, address: addressFromState(store.get()) });
    name.value = "";
    toast("View saved.");
    await load();
  });
  const share = () => attempt(async () => {
    shareButton.disabled = true;
    try {
      const answers = await questionsOfView(store, reload);
      const made = await postJson("shares", { title: document.title.replace(" · Emberwatch", "").slice(0, 120) || "view", address: addressFromState(store.get()), answers, expires_s: Number(expiry.value) });
      await copyText(`${location.origin}/shared/${made.token}`, "Link copied. It shows this picture until it expires.");
      await load();
    } finally {
      shareButton.disabled = false;
    }
  });
  const load = async () => {
    const [saved, shared, { now_s }] = await Promise.all([getJson("views", {}), getJson("shares", {}), getJson("now", {})]);
    const remove = (/** @type {string} */ path) => attempt(async () => {
      await removeJson(path);
      await load();
    });
    fill(views, ...saved.views.map((/** @type {{id: string, name: string, address: string}} */ view) => viewItem(view, () => remove(`views/${view.id}`), close)));
    fill(shares, ...shared.shares.map((/** @type {{id: string, title: string, expires_s: number}} */ one) => shareItem(one, now_s, () => remove(`shares/${one.id}`))));
  };
  const panel = element("div", { class: "saved-panel" },
    element("h3", {}, "Saved views"), views,
    formOf(save, name, element("button", { class: "button", type: "submit" }, "Save")),
    element("h3", {}, "Share this view"),
    element("p", { class: "is-quiet" }, "A link that shows what is on screen, read only, until it expires. It keeps the numbers even when the profiles are gone."),
    formOf(share, expiry, shareButton), shares, problem);
  const button = element("button", { class: "button is-icon saved-button", type: "button", "aria-label": "Saved views and shares", title: "Saved views and shares" }, icon("bookmark"));
  const popover = makePopover(button, panel, { onOpen: () => void attempt(load) });
  const close = () => popover.close();
  return { root: popover.root };
}

/**
 * @param {() => void} act
 * @param {...HTMLElement} fields
 */
function formOf(act, ...fields) {
  const form = element("form", { class: "saved-form" }, ...fields);
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    act();
  });
  return form;
}

/**
 * @param {{id: string, name: string, address: string}} view
 * @param {() => void} remove
 * @param {() => void} close
 */
function viewItem({ name, address }, remove, close) {
  // Through the state and back: only what the page knows becomes a link.
  const [path, query = ""] = address.split("?");
  const href = addressFromState(stateFromAddress(path, query ? `?${query}` : ""));
  return element("li", {}, element("a", { class: "saved-link", href, "data-route": true, onclick: close }, visibleText(name)), removeButton(`Remove ${name}`, remove));
}

/**
 * @param {{id: string, title: string, expires_s: number}} share
 * @param {number} now_s
 * @param {() => void} remove
 */
function shareItem({ title, expires_s }, now_s, remove) {
  return element("li", {}, element("span", { class: "saved-link" }, visibleText(title)), element("span", { class: "is-quiet" }, leftWords(expires_s - now_s)), removeButton(`Take back ${title}`, remove));
}

/** @param {string} label @param {() => void} remove */
function removeButton(label, remove) {
  return element("button", { class: "button is-icon", type: "button", "aria-label": visibleText(label), title: visibleText(label), onclick: remove }, icon("close"));
}

/**
 * All questions of the view on screen, its range pinned: it is shown anew, and read until nothing is asked any more.
 * @param {Store} store
 * @param {() => void} reload
 */
async function questionsOfView(store, reload) {
  const state = store.get();
  const record = beginRecord();
  const hasRange = state.view !== "compare" && state.view !== "deploy";
  if (hasRange && isRelative(state)) {
    const { from_s, until_s } = resolveRange(state, Date.now() / 1000);
    store.set({ ...absoluteRange(from_s, until_s), live: false });
  }
  reload();
  const until_ms = performance.now() + LONGEST_MS;
  let quiet_ms = 0;
  while (quiet_ms < QUIET_MS && performance.now() < until_ms) {
    await new Promise((done) => setTimeout(done, 100));
    quiet_ms = record.open === 0 ? quiet_ms + 100 : 0;
  }
  return [...record.asked];
}
