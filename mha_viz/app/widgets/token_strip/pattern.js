// @ts-check
// The attention pattern of one head: the weight of each key for each query.

import { unpack12 } from "../../browser/packing.js";

/** @typedef {[position: number, weight: number]} Weighted */

export const LEAST_SHOWN = 0.02; // lower weights are written neither on a chip nor in the sentence

export class Pattern {
  /**
   * @param {string} base64 the lower triangle row by row, as token_strip.py packs it
   * @param {number} length tokens of the text
   */
  constructor(base64, length) {
    this.weights = unpack12(base64);
    this.length = length;
  }

  /**
   * How much a query looks at a key; 0 for the masked keys after it.
   * @param {number} query
   * @param {number} key
   */
  weight(query, key) {
    return key > query ? 0 : this.weights[(query * (query + 1)) / 2 + key] / 4095;
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
   * The query and the key of the largest weight in the block that begins at (query, key). A heatmap
   * of a long text draws such a block as one cell.
   * @param {number} query
   * @param {number} key
   * @param {number} block tokens per side
   */
  strongestInBlock(query, key, block) {
    let best = { query, key: Math.min(key, query), weight: -1 };
    for (let q = query; q < Math.min(query + block, this.length); q++) {
      for (let k = key; k < Math.min(key + block, q + 1); k++) {
        const weight = this.weight(q, k);
        if (weight > best.weight) best = { query: q, key: k, weight };
      }
    }
    return best;
  }
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
    if (weight >= LEAST_SHOWN) found.push([position, weight]);
  }
  return found.sort((a, b) => b[1] - a[1]).slice(0, most);
}
