// @ts-check
// Arrow keys: on the strip they move from token to token, elsewhere from head to head.

import { withModifier } from "../../browser/dom.js";
import { neighbour } from "../../browser/head_name.js";

/** @import { TokenStrip } from "./token_strip.js" */

// Elements that use the arrow keys themselves.
const TAKES_ARROWS = "input, textarea, select, [contenteditable], [role=listbox], [role=option], [role=tab], " +
  "[role=slider], [role=menu], [role=radiogroup], [role=combobox], [role=dialog]";

/**
 * @param {TokenStrip} strip
 * @param {KeyboardEvent} event
 */
export function onKey(strip, event) {
  if (withModifier(event) || event.defaultPrevented) return;
  const target = event.composedPath()[0]; // event.target stops at a shadow root
  if (strip.chips.positionOf(target) !== null) return onStripKey(strip, event, target);
  const head = neighbour(strip.head, event.key);
  if (!head || (target instanceof Element && target.closest(TAKES_ARROWS))) return;
  event.preventDefault();
  strip.selectHead(head);
}

/**
 * @param {TokenStrip} strip
 * @param {KeyboardEvent} event
 * @param {EventTarget} target
 */
function onStripKey(strip, event, target) {
  const here = strip.hovered ?? strip.pinned, last = strip.labels.length - 1;
  const to = destination(event.key, here, last);
  if (to !== null) strip.chips.focus(to);
  else if (event.key === "Enter" || event.key === " ") strip.pin(here);
  else if (event.key === "Escape") /** @type {HTMLElement} */ (target).blur();
  else return;
  event.preventDefault();
  event.stopPropagation();
}

/**
 * The position that a key moves to, within the text; null for other keys.
 * @param {string} key
 * @param {number} here
 * @param {number} last
 */
export function destination(key, here, last) {
  if (key === "ArrowLeft") return Math.max(here - 1, 0);
  if (key === "ArrowRight") return Math.min(here + 1, last);
  if (key === "Home") return 0;
  if (key === "End") return last;
  return null;
}
