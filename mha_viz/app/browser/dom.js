// @ts-check
// Elements of the page. A user's text enters the page as text, never as HTML.

/**
 * A new element with a class and a text.
 * @template {keyof HTMLElementTagNameMap} Tag
 * @param {Tag} tag
 * @param {string} [className]
 * @param {string} [text]
 * @returns {HTMLElementTagNameMap[Tag]}
 */
export function element(tag, className, text) {
  const node = document.createElement(tag);
  if (className) node.className = className;
  if (text !== undefined) node.textContent = text;
  return node;
}

/**
 * The first element that matches; a missing one is a mistake in the component's HTML.
 * @param {ParentNode} parent
 * @param {string} selector
 * @returns {HTMLElement}
 */
export function find(parent, selector) {
  const found = parent.querySelector(selector);
  if (!found) throw new Error(`${selector} is missing`);
  return /** @type {HTMLElement} */ (found);
}

/**
 * Sets CSS variables, `--query-fill` from `query_fill`; values other than strings are skipped.
 * @param {HTMLElement} node
 * @param {Record<string, unknown>} values
 */
export function setVariables(node, values) {
  for (const [name, value] of Object.entries(values)) {
    if (typeof value === "string") node.style.setProperty(`--${name.replaceAll("_", "-")}`, value);
  }
}

/**
 * The element on the page that holds a component: for a shadow root, its host.
 * @param {HTMLElement | ShadowRoot} parent
 * @returns {HTMLElement}
 */
export function hostOf(parent) {
  return /** @type {HTMLElement} */ ("host" in parent ? parent.host : parent);
}

/**
 * A CSS variable of Streamlit's theme, "" where there is none.
 * @param {Element} host
 * @param {string} name
 */
export function themeVariable(host, name) {
  return getComputedStyle(host).getPropertyValue(name).trim();
}

/**
 * Whether Ctrl, Alt or Meta is held, so that the key press belongs to the browser.
 * @param {KeyboardEvent | MouseEvent} event
 */
export function withModifier(event) {
  return event.ctrlKey || event.metaKey || event.altKey;
}

/**
 * Lets the browser save a file.
 * @param {Blob} file
 * @param {string} name
 */
export function saveAs(file, name) {
  const link = element("a");
  link.href = URL.createObjectURL(file);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000); // the browser may read it a little later
}
