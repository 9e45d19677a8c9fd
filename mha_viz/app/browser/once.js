// @ts-check
// Streamlit may run the same code many times in a browser page. Listeners on the whole page are set
// up by the first run only.

/** @typedef {Window & { mhaViz?: Set<string> }} Page */

/**
 * Whether this is the first call with this name since the browser page was loaded.
 * @param {string} name
 */
export function isFirstCall(name) {
  const page = /** @type {Page} */ (window);
  const called = (page.mhaViz ??= new Set());
  const first = !called.has(name);
  called.add(name);
  return first;
}
