// @ts-check
// Another head is shown before Python has answered, if the browser has the patterns of all heads.

import { headKey, headLabel } from "../../browser/head_name.js";
import { deliver, receive } from "../../browser/parcel.js";
import { cellColours } from "./cell_colours.js";
import { Pattern } from "./pattern.js";

/** @import { Head } from "../../browser/head_name.js" */
/** @import { TokenStrip } from "./token_strip.js" */

export class Ahead {
  /** @param {TokenStrip} strip */
  constructor(strip) {
    this.strip = strip;
    /** @type {{ trace_key: string, codes: Uint8Array } | null} the patterns of all heads of a text */
    this.every = null;
    this.end = receive("every pattern", (every) => { this.every = every; });
  }

  /** Shows the selected head in the strip and the heatmap; false if its pattern is not here. */
  show() {
    const { every } = this;
    const { data: { trace_key, n_heads, scale, block }, head, labels, palette, window } = this.strip;
    if (every?.trace_key !== trace_key || block > 1) return false;
    const pattern = Pattern.quick(every.codes, head.layer * n_heads + head.head, labels.length);
    if (!pattern) return false;
    this.strip.pattern = pattern;
    deliver("ahead", { shows: headKey(head), cells: cellColours(pattern, window, scale, palette) });
    return true;
  }

  /** @param {string} head the one that Python's figures show, or will show in this run */
  settle(head) {
    deliver("ahead", { shows: head, cells: null });
  }

  destroy() {
    this.end();
    deliver("ahead", null);
  }
}

/**
 * Writes the head into the lines of the page that name the selected one.
 * @param {Head} head
 */
export function nameHead(head) {
  const name = headLabel(head);
  for (const node of document.querySelectorAll(".selected-head")) {
    if (node.textContent !== name) node.textContent = name;
  }
}
