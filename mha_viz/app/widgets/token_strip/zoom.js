// @ts-check
// From the ranges of the heatmap's axes to the window of tokens that it shows, and back.

/** @import { Axis } from "../../browser/plotly.js" */

/**
 * The queries from q0 up to q1 and the keys from k0 up to k1, each without its end.
 * @typedef {[q0: number, q1: number, k0: number, k1: number]} Window
 */

/**
 * The window that axes show, in whole tokens; null for the whole pattern.
 * @param {Pick<Axis, "range">} keys the x axis
 * @param {Pick<Axis, "range">} queries the y axis, which may run downwards
 * @param {number} length tokens of the text
 * @returns {Window | null}
 */
export function windowOf(keys, queries, length) {
  const [q0, q1] = wholeTokens(queries, length), [k0, k1] = wholeTokens(keys, length);
  return q0 === 0 && q1 === length && k0 === 0 && k1 === length ? null : [q0, q1, k0, k1];
}

/** @param {Pick<Axis, "range">} axis @param {number} length */
function wholeTokens({ range }, length) {
  const [low, high] = [...range].sort((a, b) => a - b);
  return [Math.max(0, Math.round(low + 0.5)), Math.min(length, Math.round(high + 0.5))];
}

/**
 * The axes' ranges for a window, as Plotly's relayout takes them.
 * @param {Window | null} window
 * @param {number} length tokens of the text
 */
export function rangesOf(window, length) {
  const [q0, q1, k0, k1] = window ?? [0, length, 0, length];
  return { "xaxis.range": [k0 - 0.5, k1 - 0.5], "yaxis.range": [q1 - 0.5, q0 - 0.5] };
}

/** @param {Window | null} a @param {Window | null} b */
export function sameWindow(a, b) {
  return String(a) === String(b);
}
