// @ts-check
// The colours of the heatmap's cells, as figures/heatmap.py draws them.

import { channelsAt, scalePosition } from "../../browser/colours.js";

/** @import { Palette, Scale } from "../../browser/colours.js" */
/** @import { Pattern } from "./pattern.js" */
/** @import { Window } from "./zoom.js" */

const LEVELS = 1024;
/** @type {WeakMap<string[], number[][]>} the colours between those of a palette */
const ramps = new WeakMap();

/**
 * The cells of a window of the pattern; masked ones are transparent.
 * @param {Pattern} pattern
 * @param {Window | null} window null for the whole pattern
 * @param {Scale} scale
 * @param {Palette} palette
 * @returns {ImageData}
 */
export function cellColours(pattern, window, scale, { sequential }) {
  const [q0, q1, k0, k1] = window ?? [0, pattern.length, 0, pattern.length];
  const width = k1 - k0, height = q1 - q0, cells = new ImageData(width, height);
  const ramp = rampOf(sequential);
  for (let query = q0; query < q1; query++) {
    for (let key = k0; key < Math.min(k1, query + 1); key++) {
      const place = Math.min(scalePosition(pattern.weight(query, key), scale, query), 1);
      const at = 4 * ((query - q0) * width + key - k0);
      cells.data.set(ramp[Math.round(place * LEVELS)], at);
      cells.data[at + 3] = 255;
    }
  }
  return cells;
}

/** @param {string[]} sequential */
function rampOf(sequential) {
  let ramp = ramps.get(sequential);
  if (!ramp) {
    ramp = Array.from({ length: LEVELS + 1 }, (_, i) => channelsAt(sequential, i / LEVELS));
    ramps.set(sequential, ramp);
  }
  return ramp;
}
