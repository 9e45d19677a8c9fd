// @ts-check
// The sentence under the drawing: what a highlighted token looks at, or which tokens look at it.

import { element } from "../../../browser/dom.js";
import { tokenNode } from "../../../browser/token_label.js";

/** @import { End } from "./geometry.js" */
/** @import { HeadLines } from "./head_lines.js" */

const NAMED = 3; // tokens for each head

/** Said while no token is highlighted. */
export const HINT = "Point at a token or use the arrow keys to highlight its lines.";

/** @param {number} weight */
export function weightText(weight) {
  return weight < 0.01 ? "<0.01" : weight.toFixed(2);
}

/**
 * @param {End | null} highlighted
 * @param {{ lines: HeadLines, colour: string }[]} heads
 * @param {string[]} labels
 */
export function sentence(highlighted, heads, labels) {
  if (!highlighted) return [element("span", "muted", HINT)];
  const { at, side } = highlighted;
  const verb = side === "query" ? " looks at " : " is looked at by ";
  return [
    tokenNode("b", labels[at], at), verb,
    ...heads.flatMap((head) => headPart(highlighted, head, labels)),
  ];
}

/** @param {End} end @param {{ lines: HeadLines, colour: string }} head @param {string[]} labels */
function headPart(end, { lines, colour }, labels) {
  const name = element("span", "head", lines.name);
  name.style.setProperty("--own", colour);
  const named = lines.partners(end).slice(0, NAMED).map(([position, weight]) => {
    const pair = element("span", "pair");
    pair.append(tokenNode("span", labels[position], position), ` ${weightText(weight)}`);
    return pair;
  });
  return [name, ...(named.length ? named : [element("span", "pair muted", "no line")])];
}
