// @ts-check
// Keys on the drawing: along the tokens, and from side to side.

/** @import { End } from "./geometry.js" */

/**
 * The end that a key moves to; null for other keys.
 * @param {string} key
 * @param {End} from
 * @param {number} last position of the last token
 * @param {boolean} vertical whether the tokens run down the page
 * @returns {End | null}
 */
export function endAfterKey(key, { at, side }, last, vertical) {
  const [back, on, toQuery, toKey] = vertical
    ? ["ArrowUp", "ArrowDown", "ArrowLeft", "ArrowRight"]
    : ["ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown"];
  if (key === back) return { at: Math.max(at - 1, 0), side };
  if (key === on) return { at: Math.min(at + 1, last), side };
  if (key === "Home") return { at: 0, side };
  if (key === "End") return { at: last, side };
  if (key === toQuery) return { at, side: "query" };
  if (key === toKey) return { at, side: "key" };
  return null;
}

/** @param {End | null} a @param {End | null} b */
export function sameEnd(a, b) {
  return a?.at === b?.at && a?.side === b?.side;
}
