// @ts-check
// A line of code that names an option is as good as the option's own button: a click, Enter or the
// space bar on it selects the option, and the keyboard stays on the line.

import { isFirstCall } from "../browser/once.js";

const LINES = ".code_view .line";

/** Listens on the whole page; further calls do nothing. */
export default function selectByLine() {
  if (!isFirstCall("select by line")) return;
  document.addEventListener("click", (event) => {
    if (getSelection()?.isCollapsed !== false) choose(lineOf(event)); // else text is being marked
  });
  document.addEventListener("keydown", (event) => {
    const line = event.key === "Enter" || event.key === " " ? lineOf(event) : null;
    if (!line) return;
    event.preventDefault();
    keepFocus([...document.querySelectorAll(LINES)].indexOf(line));
    choose(line);
  });
}

/** @param {Event} event @returns {HTMLElement | null} */
function lineOf(event) {
  const target = /** @type {Element} */ (event.composedPath()[0]);
  return target.closest?.(`${LINES}[data-option]`) ?? null;
}

/** @param {HTMLElement | null} line */
function choose(line) {
  if (!line) return;
  const { control, option } = line.dataset;
  const labels = document.querySelectorAll(`.st-key-${control} [role=radiogroup] p`);
  const label = [...labels].find((one) => one.textContent === option);
  /** @type {HTMLElement | null | undefined} */ (label?.closest("button, label"))?.click();
}

/** The code is drawn anew after a choice. @param {number} place of the line */
function keepFocus(place) {
  const observer = new MutationObserver(() => {
    const line = /** @type {HTMLElement | undefined} */ (document.querySelectorAll(LINES)[place]);
    if (document.activeElement !== document.body || !line) return;
    line.focus();
    observer.disconnect();
  });
  observer.observe(document.body, { subtree: true, childList: true });
  document.addEventListener("pointerdown", () => observer.disconnect(), { once: true });
}
