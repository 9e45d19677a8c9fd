// @ts-check
// Figures that show a value for each query and key, and the choice of both: a click on a cell or on
// a bar goes to Python as one state, "pick". The selection is outlined here, over figures that do not
// change.

import { component } from "../../browser/component.js";
import { element } from "../../browser/dom.js";
import { LinkedFigures } from "../../browser/linked_figures.js";
import { NextFrame } from "../../browser/next_frame.js";
import { Outbox } from "../../browser/outbox.js";
import { rectangle } from "../../browser/overlay.js";
import { hidePlotlyTooltip } from "../../browser/plotly.js";
import { hideTooltip, pooledNote, showTooltip } from "../../browser/tooltip.js";

/** @import { SetState } from "../../browser/component.js" */
/** @import { Handlers } from "../../browser/linked_figures.js" */
/** @import { Figure, Point, PointEvent } from "../../browser/plotly.js" */

/**
 * What cells.py sends; figures are named by their keys.
 * @typedef {object} Data
 * @property {string[]} maps figures with a cell for each query and key
 * @property {string[]} bars figures with a bar for each key
 * @property {number} block tokens per side of a cell
 * @property {number} query
 * @property {number | null} key
 * @property {string[]} tokens
 * @property {string} trace_key differs for every text and model
 * @property {{ query: string, page: string, ink: string, surface: string }} colours
 * @property {number} ack
 */

class Cells {
  /** @param {SetState} setState @param {Data} data */
  constructor(setState, data) {
    this.outbox = new Outbox(setState, "pick");
    this.data = data;
    this.marks = new NextFrame(() => this.drawMarks());
    this.figures = new LinkedFigures(
      (name, figure) => this.handlers(name, figure),
      () => this.marks.request(),
    );
  }

  destroy() {
    this.figures.destroy();
    this.marks.destroy();
  }

  /** @param {Data} data */
  update(data) {
    this.data = data;
    this.outbox.upToDate(data.ack);
    this.figures.follow([...data.maps, ...data.bars].map((name) => (
      [name, `.st-key-${name} .js-plotly-plot`]
    )));
    this.marks.request();
  }

  /** @param {string} name @param {Figure} figure @returns {Handlers} */
  handlers(name, figure) {
    const isMap = this.data.maps.includes(name);
    return {
      plotly_click: ({ points: [point] }) => (isMap ? this.pickCell(name, point) : this.pickBar(name, point)),
      plotly_afterplot: () => this.marks.request(),
      ...(isMap && {
        plotly_hover: (event) => this.hover(figure, event),
        plotly_unhover: hideTooltip,
      }),
    };
  }

  // For a pooled cell, Python finds the pair with the largest value.
  /** @param {string} map @param {Point} point */
  pickCell(map, point) {
    this.send(map, firstPair(point, this.data.block));
  }

  /** @param {string} map @param {Point} point */
  pickBar(map, { customdata: [key] }) {
    if (key !== null) this.send(map, { key });
  }

  /** @param {string} map @param {{ query?: number, key: number }} choice */
  send(map, choice) {
    this.outbox.send({ ...choice, map, trace_key: this.data.trace_key });
  }

  // Plotly knows the few tokens on its axes; this tooltip names the others too.
  /** @param {Figure} figure @param {PointEvent} event */
  hover(figure, { points: [point], event }) {
    const { block, tokens, colours } = this.data;
    const { query, key } = firstPair(point, block);
    hidePlotlyTooltip(figure);
    const value = Number(point.customdata ?? point.z).toPrecision(4).replace("-", "−");
    showTooltip([
      [`from ${tokensOf(query, block, tokens)}`],
      [`to   ${tokensOf(key, block, tokens)}`],
      [element("b", "", value + pooledNote(block))],
    ], event, colours);
  }

  drawMarks() {
    const { query, key, maps, colours } = this.data;
    for (const name of maps) {
      const linked = this.figures.get(name);
      if (!linked) continue;
      const { figure, overlay } = linked;
      const [left, right] = figure._fullLayout?.xaxis?.range ?? [0, 0];
      const row = rectangle(
        figure, [left, right, query - 0.5, query + 0.5], `border:1px solid ${colours.query}`,
      );
      const cell = key === null ? null : rectangle(
        figure, [key - 0.5, key + 0.5, query - 0.5, query + 0.5],
        `border:2px solid ${colours.query};box-shadow:0 0 0 1px ${colours.page}`, 5,
      );
      overlay.replaceChildren(...[row, cell].filter((mark) => mark !== null));
    }
  }
}

/**
 * The first query and the first key of a cell, which stands for a block of both.
 * @param {Point} cell
 * @param {number} block
 */
export function firstPair({ x, y }, block) {
  const half = (block - 1) / 2;
  return { query: Math.round(y - half), key: Math.round(x - half) };
}

/**
 * The tokens of a block, as a tooltip names them.
 * @param {number} first
 * @param {number} block
 * @param {string[]} tokens
 */
export function tokensOf(first, block, tokens) {
  const name = (/** @type {number} */ at) => `${tokens[at]} (${at})`;
  return block > 1 ? `${name(first)} … ${name(Math.min(first + block, tokens.length) - 1)}` : name(first);
}

export default component((_, setState, /** @type {Data} */ data) => new Cells(setState, data));
