// @ts-check
// The grid of heads and the heatmap beside the strip: their events, and the marks over them.

import { LinkedFigures } from "../../browser/linked_figures.js";
import { NextFrame } from "../../browser/next_frame.js";
import { isDrawn } from "../../browser/plotly.js";
import { markTick, thinColourBar } from "./axis_labels.js";
import { markGrid, markHeatmap } from "./figure_marks.js";
import { Heatmap } from "./heatmap.js";
import { Touch } from "./touch.js";

/** @import { Handlers, Linked } from "../../browser/linked_figures.js" */
/** @import { Figure } from "../../browser/plotly.js" */
/** @import { TokenStrip } from "./token_strip.js" */

/** @type {[name: string, selector: string][]} */
const FIGURES = [
  ["grid", ".st-key-head_grid .js-plotly-plot"],
  ["heatmap", ".st-key-head_map .js-plotly-plot"],
];

export class Figures {
  /** @param {TokenStrip} strip */
  constructor(strip) {
    this.strip = strip;
    this.heatmap = new Heatmap(strip);
    this.marks = new NextFrame(() => this.drawMarks());
    this.linked = new LinkedFigures(
      (name, figure) => this.handlers(name, figure),
      () => this.marks.request(),
    );
    /** @type {Figure | null} the heatmap whose colour bar was thinned since it was drawn */
    this.thinned = null;
  }

  follow() {
    this.linked.follow(FIGURES);
  }

  /** @param {string} name @param {Figure} figure @returns {Handlers} */
  handlers(name, figure) {
    const touch = new Touch(figure);
    const isHeatmap = name === "heatmap";
    const handlers = isHeatmap ? this.heatmap.handlers(figure) : this.gridHandlers();
    const { plotly_click: click } = handlers;
    if (isHeatmap) touch.endDragging();
    return {
      ...handlers,
      plotly_click: (event) => touch.moved || click(event),
      plotly_afterplot: () => {
        if (isHeatmap) {
          touch.endDragging();
          this.thinned = null;
        }
        this.marks.request();
      },
    };
  }

  /** @returns {Handlers} */
  gridHandlers() {
    return {
      plotly_click: ({ points: [{ customdata: [layer, head] }] }) => this.strip.selectHead({ layer, head }),
    };
  }

  drawMarks() {
    const { head, palette, notes, data: { room } } = this.strip;
    const grid = this.linked.get("grid"), heatmap = this.linked.get("heatmap");
    if (grid) {
      markGrid(grid, head, palette, room);
      notes.drawOn(grid);
    }
    if (heatmap && isDrawn(heatmap.figure)) this.drawOnHeatmap(heatmap);
  }

  /** @param {Linked} heatmap */
  drawOnHeatmap(heatmap) {
    const { query, labels, palette, data: { stage } } = this.strip, { figure } = heatmap;
    markHeatmap(heatmap, query, labels, palette, stage);
    if (this.thinned !== figure) thinColourBar(figure);
    this.thinned = figure;
    markTick(figure, "y", query, palette.query, palette.ink);
    markTick(figure, "x", query, palette.key, palette.ink);
  }

  destroy() {
    this.linked.destroy();
    this.marks.destroy();
    this.heatmap.destroy();
  }
}
