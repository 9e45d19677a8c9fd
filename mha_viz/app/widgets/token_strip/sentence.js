// @ts-check
// The sentence under the strip: what a token looks at, and which tokens look at it.

import { element } from "../../browser/dom.js";
import { shorten, tokenNode } from "../../browser/token_label.js";
import { LABEL_LENGTH } from "./chips.js";
import { MIN_SHOWN, weightText } from "./pattern.js";

/** @import { Palette } from "../../browser/colours.js" */
/** @import { Pattern, Weighted } from "./pattern.js" */

const NAMED = 3; // tokens in each half

/**
 * The tokens that one half of the sentence names, and its text if there are none.
 * @typedef {{ named: Weighted[], nothing: string }} Half
 */

/**
 * @param {number} query
 * @param {Pattern} pattern
 * @returns {Half}
 */
export function looksAt(query, pattern) {
  return {
    named: pattern.strongestKeys(query, NAMED),
    nothing: `many tokens, none above ${MIN_SHOWN}`,
  };
}

/**
 * @param {number} key
 * @param {Pattern} pattern
 * @returns {Half}
 */
export function lookedAtBy(key, pattern) {
  return {
    named: pattern.strongestQueries(key, NAMED),
    nothing: `no token above ${MIN_SHOWN}`,
  };
}

/**
 * The sentence about the token at a position.
 * @param {number} position
 * @param {Pattern} pattern
 * @param {string[]} labels
 * @param {Palette} palette
 */
export function sentence(position, pattern, labels, palette) {
  const name = (/** @type {number} */ at) => shorten(labels[at], LABEL_LENGTH);
  const asQuery = element("span", "part");
  asQuery.append(
    square(palette.accent), " ", tokenNode("b", name(position), position),
    element("b", "", " looks at "), ...list(looksAt(position, pattern), name),
  );
  if (position === pattern.length - 1) return [asQuery]; // no token can look at the last one
  const asKey = element("span", "part keys");
  asKey.append(
    square(palette.key), " ", element("b", "", "looked at by "),
    ...list(lookedAtBy(position, pattern), name),
  );
  return [asQuery, asKey];
}

/** @param {Half} half @param {(position: number) => string} name */
function list({ named, nothing }, name) {
  if (!named.length) return [nothing];
  return named.map(([position, weight]) => {
    const pair = element("span", "pair");
    pair.append(tokenNode("span", name(position), position), ` ${weightText(weight)}`);
    return pair;
  });
}

/** @param {string} colour */
function square(colour) {
  const node = element("span", "square");
  node.style.background = colour;
  return node;
}
