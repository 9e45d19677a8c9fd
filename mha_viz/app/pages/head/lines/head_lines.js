// @ts-check
// The lines of one head: from queries to keys, the strongest first, as Python sends them.

import { unpack16 } from "../../../browser/packing.js";

/** @import { End } from "./geometry.js" */

const STEPS = 64_000; // between 0 and 1; each multiple of 0.0005 begins a step

export class HeadLines {
  /**
   * @param {object} sent
   * @param {string} sent.name for people
   * @param {string} sent.lines queries, keys and weights, packed
   * @param {number} sent.at_rest how many are drawn while no token is highlighted
   */
  constructor({ name, lines, at_rest }) {
    const numbers = unpack16(lines), n = numbers.length / 3;
    this.name = name;
    this.atRest = at_rest;
    this.count = n;
    this.queries = numbers.subarray(0, n);
    this.keys = numbers.subarray(n, 2 * n);
    this.packedWeights = numbers.subarray(2 * n);
  }

  /** @param {number} line */
  weight(line) {
    return (this.packedWeights[line] + 0.5) / STEPS;
  }

  /**
   * The indices of the lines to draw: those at an end or, without an end, those drawn at rest.
   * @param {End | null} end
   */
  *of(end) {
    if (!end) {
      for (let line = 0; line < this.atRest; line++) yield line;
      return;
    }
    const own = end.side === "query" ? this.queries : this.keys;
    for (let line = 0; line < this.count; line++) if (own[line] === end.at) yield line;
  }

  /**
   * The tokens at the other ends of an end's lines, with their weights, the strongest first.
   * @param {End} end
   * @returns {[position: number, weight: number][]}
   */
  partners(end) {
    const others = end.side === "query" ? this.keys : this.queries;
    return Array.from(this.of(end), (line) => [others[line], this.weight(line)]);
  }
}
