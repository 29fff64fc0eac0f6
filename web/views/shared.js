// SPDX-License-Identifier: Apache-2.0
/** A shared view: the answers it was made from, once fetched, and a state that leaves the address alone. */

import { leftWords } from "../core/frozen.js";
import { visibleText } from "../core/text.js";
import { formatClock, formatDay } from "../core/units.js";
import { freezeAnswers, getJson } from "../net/api.js";
import { makeStore } from "../state/store.js";
import { element, fill } from "./dom.js";

/** @typedef {{title: string, address: string, created_s: number, expires_s: number, answers: Record<string, unknown>}} SharedAnswer */

/** The token in the page's path; "" when it is no shared view. @param {string} path */
export function tokenOfPath(path) {
  return /^\/shared\/([\w-]{1,64})$/.exec(path)?.[1] ?? "";
}

/**
 * @param {string} token
 * @returns {Promise<{shared: SharedAnswer, store: import("../state/store.js").Store}>}
 */
export async function openShared(token) {
  const shared = /** @type {SharedAnswer} */ (await getJson(`shared/${token}`, {}));
  freezeAnswers(shared.answers);
  const [pathname, query = ""] = shared.address.split("?");
  const still = { location: { pathname, search: query ? `?${query}` : "" }, history: { pushState() {}, replaceState() {} }, addEventListener() {} };
  return { shared, store: makeStore(/** @type {any} */ (still)) };
}

/** @param {HTMLElement} place @param {SharedAnswer} shared */
export function showBanner(place, { title, created_s, expires_s }) {
  const when = `${formatDay(created_s)} ${formatClock(created_s, false)}`;
  fill(place,
    element("span", { class: "brand" }, element("span", { class: "brand-dot", "aria-hidden": "true" }), "emberwatch"),
    element("p", { class: "shared-words" }, element("b", {}, visibleText(title)), ` · shared ${when}, read only, ${leftWords(expires_s - Date.now() / 1000)}`));
  document.title = `${visibleText(title)} · shared · Emberwatch`;
}

/** @param {HTMLElement} place @param {unknown} error */
export function showSharedProblem(place, error) {
  const { message, hint } = /** @type {{message?: string, hint?: string}} */ (error);
  fill(place, element("div", { class: "message" }, element("h1", {}, "This view cannot be shown"), element("p", { class: "message-hint" }, `${message ?? error}. ${hint ?? ""}`)));
}
