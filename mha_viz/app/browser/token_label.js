// @ts-check
// How a token is written: its label, shortened in the middle, and its position as a subscript.

import { element } from "./dom.js";

/**
 * At most `limit` characters of a text, with an ellipsis in place of its middle.
 * @param {string} text
 * @param {number} limit
 */
export function shorten(text, limit) {
  const letters = [...text];
  if (letters.length <= limit) return text;
  const half = limit >> 1;
  return letters.slice(0, half).join("") + "…" + letters.slice(letters.length - (limit - half - 1)).join("");
}

/**
 * Writes a label into an element; CSS can make the mark of its leading space lighter.
 * @param {HTMLElement} node
 * @param {string} label
 */
export function writeLabel(node, label) {
  if (label.startsWith("·") && label.length > 1) node.append(element("span", "dot", "·"), label.slice(1));
  else node.append(label);
}

/**
 * A token with its position, for a sentence.
 * @param {"b" | "span"} tag
 * @param {string} label
 * @param {number} position
 */
export function tokenNode(tag, label, position) {
  const token = element(tag, "token");
  writeLabel(token, label);
  token.append(element("sub", "", String(position)));
  return token;
}
