// @ts-check
// Streamlit may run the same code many times in a browser page. What listens to the whole page is set
// up by the first run alone.

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
