// @ts-check
// Marks of the selection, drawn over the figures: the head on the grid, the query's row and column on the
// heatmap.

import { element } from "../../browser/dom.js";
import { rectangle } from "../../browser/overlay.js";
import { shorten } from "../../browser/token_label.js";

/** @import { Palette } from "../../browser/colours.js" */
/** @import { Head } from "../../browser/head_name.js" */
/** @import { Linked } from "../../browser/linked_figures.js" */

const LABEL_LENGTH = 12;
const LABEL_ROOM = 110; // pixels beside the row that its label needs

/**
 * Rings the selected head's thumbnail.
 * @param {Linked} grid
 * @param {Head} head
 * @param {Palette} palette
 * @param {number} room below the thumbnail
 */
export function markGrid({ figure, overlay }, { layer, head }, { query, page }, room) {
  const style = `border:2.5px solid ${query};box-shadow:0 0 0 1px ${page}, inset 0 0 0 1px ${page}`;
  const ring = rectangle(figure, [head - 0.5, head + 0.5, layer - 0.5, layer - 0.5 + 1 / (1 + room)], style);
  overlay.replaceChildren(...(ring ? [ring] : []));
}

/**
 * Frames the row of what the query looks at, and the column of what looks at it.
 * @param {Linked} heatmap
 * @param {number} query
 * @param {string[]} labels
 * @param {Palette} palette
 * @param {boolean} stage larger, for a projector
 */
export function markHeatmap({ figure, overlay }, query, labels, palette, stage) {
  const start = query - 0.5, end = query + 0.5, last = labels.length - 0.5;
  const rowStyle = `border:2px solid ${palette.query};box-shadow:0 0 0 1px ${palette.page}`;
  const row = rectangle(figure, [-0.5, end, start, end], rowStyle);
  const columnStyle = `border:2px dotted ${palette.key}`;
  const column = end < last ? rectangle(figure, [start, end, end, last], columnStyle) : null;
  const marks = column ? [column] : [];
  if (row) marks.push(row, rowLabel(row, figure, labels[query], palette.query, stage));
  overlay.replaceChildren(...marks);
}

/**
 * @param {HTMLElement} row
 * @param {Linked["figure"]} figure
 * @param {string} token
 * @param {string} colour
 * @param {boolean} stage
 */
function rowLabel(row, figure, token, colour, stage) {
  const label = element("div");
  const right = parseFloat(row.style.left) + parseFloat(row.style.width);
  const { l, w } = figure._fullLayout?._size ?? { l: 0, w: 0 };
  label.style.cssText = `position:absolute;white-space:nowrap;color:${colour};
    font:${stage ? 16 : 13}px var(--st-font, "Source Sans"),sans-serif;font-weight:650;left:${right + 6}px;
    top:${parseFloat(row.style.top) + parseFloat(row.style.height) / 2}px;transform:translateY(-50%)`;
  label.append(element("bdi", "", shorten(token, LABEL_LENGTH)), " looks at ←");
  if (l + w - right < LABEL_ROOM) label.style.display = "none";
  return label;
}
