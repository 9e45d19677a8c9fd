// @ts-check
// The attention pattern of one head: the weight of each key for each query.

import { unpack12 } from "../../browser/packing.js";

/** @import { Scale } from "../../browser/colours.js" */

/** @typedef {[position: number, weight: number]} Weighted */

const STEPS = 4000; // between 0 and 1; no step contains a boundary of rounding
const FINE = 60, FINE_END = 0.02, STEP = 0.005; // as in every_pattern.py
const DECODED = Float64Array.from({ length: 256 }, (_, code) => (
  code < FINE ? FINE_END * ((code + 0.5) / FINE) ** 2 : FINE_END + STEP * (code + 0.5 - FINE)
));
export const MIN_SHOWN = 0.02; // smaller weights are not written on chips or in the sentence

export class Pattern {
  /**
   * @param {ArrayLike<number>} weights the lower triangle row by row
   * @param {number} length tokens of the text
   */
  constructor(weights, length) {
    this.weights = weights;
    this.length = length;
  }

  /**
   * @param {string} base64 as the strip's Python packs one pattern: exact to three digits
   * @param {number} length
   */
  static exact(base64, length) {
    return new Pattern(Float64Array.from(unpack12(base64), (step) => (step + 0.5) / STEPS), length);
  }

  /**
   * One of the patterns that every_pattern.py packs, exact to two digits; null for a pruned head.
   * @param {Uint8Array} codes of all heads
   * @param {number} index of the head among them
   * @param {number} length
   */
  static quick(codes, index, length) {
    const size = (length * (length + 1)) / 2;
    const own = codes.subarray(index * size, (index + 1) * size);
    if (own.length < size || own[0] === 0) return null; // the first token looks only at itself
    const weights = new Float64Array(size); // a plain loop takes a tenth of the time of `from`
    for (let i = 0; i < size; i++) weights[i] = DECODED[own[i]];
    return new Pattern(weights, length);
  }

  /**
   * How much a query looks at a key; 0 for the masked keys after it.
   * @param {number} query
   * @param {number} key
   */
  weight(query, key) {
    if (key > query) return 0;
    return this.weights[(query * (query + 1)) / 2 + key];
  }

  /**
   * The strongest keys of a query, the strongest first.
   * @param {number} query
   * @param {number} most
   * @returns {Weighted[]}
   */
  strongestKeys(query, most) {
    return strongest(0, query + 1, (key) => this.weight(query, key), most);
  }

  /**
   * The later queries that look most at a key, the strongest first.
   * @param {number} key
   * @param {number} most
   * @returns {Weighted[]}
   */
  strongestQueries(key, most) {
    return strongest(key + 1, this.length, (query) => this.weight(query, key), most);
  }

  /**
   * The query and the key that the cell of a block that begins at (query, key) stands for: those of
   * the largest weight or, relative to uniform attention, of the largest ratio. A heatmap of a long
   * text draws such a block as one cell.
   * @param {number} query
   * @param {number} key
   * @param {number} block tokens per side
   * @param {Scale} scale
   */
  strongestInBlock(query, key, block, scale) {
    let best = { query, key: Math.min(key, query), weight: -1 }, most = -1;
    for (let q = query; q < Math.min(query + block, this.length); q++) {
      for (let k = key; k < Math.min(key + block, q + 1); k++) {
        const weight = this.weight(q, k), value = scale === "share" ? weight * (q + 1) : weight;
        if (value > most) [best, most] = [{ query: q, key: k, weight }, value];
      }
    }
    return best;
  }
}

/**
 * A weight as a tooltip writes it, such as "1.000" or "0.834".
 * @param {number} weight
 */
export function tooltipText(weight) {
  return weight.toFixed(3);
}

/**
 * A weight as it is written, such as "1" or "0.83".
 * @param {number} weight
 */
export function weightText(weight) {
  return weight >= 0.995 ? "1" : weight.toFixed(2);
}

/**
 * @param {number} start
 * @param {number} end
 * @param {(position: number) => number} weightOf
 * @param {number} most
 * @returns {Weighted[]}
 */
function strongest(start, end, weightOf, most) {
  /** @type {Weighted[]} */
  const found = [];
  for (let position = start; position < end; position++) {
    const weight = weightOf(position);
    if (weight >= MIN_SHOWN) found.push([position, weight]);
  }
  return found.sort((a, b) => b[1] - a[1]).slice(0, most);
}
