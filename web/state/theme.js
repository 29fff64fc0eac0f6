// SPDX-License-Identifier: Apache-2.0
/** Light, dark, or as the system says. Kept in the browser, not in the address. */

/** @typedef {"system" | "light" | "dark"} ThemeChoice */

const KEY = "emberwatch-theme";
/** @type {readonly ThemeChoice[]} */
const CHOICES = ["system", "light", "dark"];

/** @returns {ThemeChoice} */
export function themeChoice() {
  try {
    const kept = localStorage.getItem(KEY);
    return CHOICES.find((choice) => choice === kept) ?? "system";
  } catch {
    return "system"; // Storage may be refused; the choice then lasts for this page.
  }
}

/** @param {ThemeChoice} choice */
export function chooseTheme(choice) {
  try {
    localStorage.setItem(KEY, choice);
  } catch {
    // As above: nothing is lost but the memory of the choice.
  }
  applyTheme(choice);
}

/** @param {ThemeChoice} choice */
export function applyTheme(choice) {
  const root = document.documentElement;
  if (choice === "system") delete root.dataset.theme;
  else root.dataset.theme = choice;
  root.dispatchEvent(new CustomEvent("themechange"));
}

/** @param {ThemeChoice} choice */
export function nextChoice(choice) {
  return CHOICES[(CHOICES.indexOf(choice) + 1) % CHOICES.length];
}

/**
 * The theme that is on screen.
 * @returns {"light" | "dark"}
 */
export function themeShown() {
  const chosen = document.documentElement.dataset.theme;
  if (chosen === "light" || chosen === "dark") return chosen;
  return matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
}

/** Tell listeners of `themechange` when the system's theme changes. */
export function watchSystemTheme() {
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => applyTheme(themeChoice()));
}
