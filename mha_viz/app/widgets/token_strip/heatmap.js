// @ts-check
// The pointer on the heatmap: a tooltip for each cell, a click that pins its query, a drag that
// zooms in, and a double click that ends the zoom.

import { element } from "../../browser/dom.js";
import { hidePlotlyTooltip, plotly } from "../../browser/plotly.js";
import { hideTooltip, pooledNote, showTooltip } from "../../browser/tooltip.js";
import { tooltipText } from "./pattern.js";
import { rangesOf, sameWindow, windowOf } from "./zoom.js";

/** @import { Handlers } from "../../browser/linked_figures.js" */
/** @import { Figure, Point, PointEvent } from "../../browser/plotly.js" */
/** @import { TokenStrip } from "./token_strip.js" */

const DOUBLE_CLICK = 320; // milliseconds between the two clicks

export class Heatmap {
  /** @param {TokenStrip} strip */
  constructor(strip) {
    this.strip = strip;
    this.doubleClicked = false;
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    this.clicked = undefined;
  }

  /** @param {Figure} figure @returns {Handlers} */
  handlers(figure) {
    return {
      plotly_hover: (event) => this.hover(figure, event),
      plotly_unhover: () => {
        hideTooltip();
        this.strip.preview(null);
      },
      plotly_click: (event) => this.click(event),
      plotly_doubleclick: () => this.doubleClick(),
      plotly_relayout: (change) => {
        if ("xaxis.range[0]" in change || "yaxis.range[0]" in change) this.zoomed(figure);
      },
    };
  }

  /** @param {Figure} figure @param {PointEvent} event */
  hover(figure, { points, event }) {
    const { query, key, weight } = this.cell(points[0]);
    hidePlotlyTooltip(figure);
    const { labels, palette, data: { block, scale } } = this.strip;
    showTooltip([
      ["from ", element("bdi", "", labels[query]), ` (${query})`],
      ["to   ", element("bdi", "", labels[key]), ` (${key})`],
      [element("b", "", tooltipText(weight) + pooledNote(block, scale))],
    ], event, palette);
    this.strip.preview(query);
  }

  /**
   * The query and the key of the cell at a point; for a pooled cell, those that it stands for.
   * @param {Point} point
   */
  cell({ x, y }) {
    const { pattern, data: { block, scale } } = this.strip;
    const half = (block - 1) / 2;
    return pattern.strongestInBlock(Math.round(y - half), Math.round(x - half), block, scale);
  }

  // While the heatmap is zoomed in, a click waits: a second one would end the zoom and pin nothing.
  /** @param {PointEvent} event */
  click({ points }) {
    const { query } = this.cell(points[0]);
    clearTimeout(this.clicked);
    if (this.doubleClicked) return;
    if (!this.strip.window) this.strip.pin(query);
    else this.clicked = setTimeout(() => this.strip.pin(query), DOUBLE_CLICK);
  }

  // Plotly reports the second click as a click too, right after the double click.
  doubleClick() {
    if (!this.strip.window) return; // two clicks, one soon after the other
    clearTimeout(this.clicked);
    this.doubleClicked = true;
    setTimeout(() => { this.doubleClicked = false; });
    this.strip.zoom(null);
  }

  // A window consists of whole tokens. A drag that does not change the window is undone.
  /** @param {Figure} figure */
  zoomed(figure) {
    if (!figure._fullLayout) return;
    const { xaxis, yaxis } = figure._fullLayout, { length } = this.strip.pattern;
    const window = windowOf(xaxis, yaxis, length);
    if (sameWindow(window, this.strip.window)) plotly()?.relayout(figure, rangesOf(window, length));
    else this.strip.zoom(window);
  }

  destroy() {
    clearTimeout(this.clicked);
  }
}
