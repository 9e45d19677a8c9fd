// @ts-check
// The picture on the page: the lines at rest and the labels, and over them the highlighted lines.

import { context, png, resize } from "./canvases.js";
import { drawLabels, drawLines } from "./drawing.js";
import { Geometry } from "./geometry.js";
import { SvgPen } from "./svg.js";

/** @import { Look, Pen } from "./drawing.js" */
/** @import { End, Side } from "./geometry.js" */
/** @import { HeadLines } from "./head_lines.js" */

/**
 * A head whose lines are shown; `index` is its place among all heads of the legend.
 * @typedef {{ lines: HeadLines, colour: string, index: number }} ShownHead
 */

/**
 * @typedef {object} Content
 * @property {string[]} labels
 * @property {ShownHead[]} heads
 * @property {number} lanes heads of the legend, each with a lane of its own
 * @property {Look} look
 * @property {number} size font size in pixels
 * @property {boolean} vertical
 */

const FADED = 0.12; // opacity of the lines at rest while a token is highlighted

export class Picture {
  /**
   * @param {HTMLElement} stage holds three canvases
   * @param {Content} content
   */
  constructor(stage, content) {
    this.stage = stage;
    this.content = content;
    const [rest, names, over] = stage.querySelectorAll("canvas");
    this.rest = rest;
    this.names = names;
    this.over = over;
    this.geometry = new Geometry({ width: 0, length: 1, size: 1, longest: 0, vertical: true });
  }

  /** @param {Content} content @param {End | null} highlighted */
  draw(content, highlighted) {
    this.content = content;
    const width = this.stage.clientWidth;
    if (!width) return;
    this.geometry = this.measure(width);
    this.stage.style.height = `${this.geometry.height}px`;
    for (const canvas of [this.rest, this.names, this.over]) resize(canvas, this.geometry);
    this.lines(context(this.rest), null);
    this.highlight(highlighted);
  }

  /** @param {number} width */
  measure(width) {
    const { labels, look, size, vertical } = this.content;
    const pen = context(this.names);
    pen.font = `${size}px ${look.mono}`;
    const longest = Math.max(...labels.map((label) => pen.measureText(label).width));
    return new Geometry({ width, length: labels.length, size, longest, vertical });
  }

  /** @param {End | null} end */
  highlight(end) {
    const pen = context(this.over);
    pen.clearRect(0, 0, this.geometry.width, this.geometry.height);
    this.rest.style.opacity = end ? String(FADED) : "1";
    if (end) this.lines(pen, end);
    this.labels(context(this.names), end);
  }

  /** @param {Pen} pen @param {End | null} end */
  lines(pen, end) {
    const { heads, lanes } = this.content;
    for (const { lines, colour, index } of heads) {
      drawLines(pen, this.geometry, lines, this.geometry.lane(index, lanes), colour, end);
    }
  }

  /** @param {Pen} pen @param {End | null} end */
  labels(pen, end) {
    const { heads, labels, look } = this.content;
    drawLabels(pen, this.geometry, labels, look, standOut(end, heads));
  }

  /** @param {End | null} end */
  svg(end) {
    const { width, height } = this.geometry;
    const pen = new SvgPen(width, height, this.content.look.palette.page);
    this.lines(pen, end);
    this.labels(pen, end);
    return pen.file();
  }

  /** @param {End | null} end */
  png(end) {
    const below = end ? this.over : this.rest;
    return png([below, this.names], this.geometry, this.content.look.palette.page);
  }
}

/**
 * The tokens whose labels stand out at each side: the highlighted one, and those at the other ends of
 * its lines, the strongest first.
 * @param {End | null} end
 * @param {ShownHead[]} heads
 * @returns {Record<Side, number[]>}
 */
export function standOut(end, heads) {
  if (!end) return { query: [], key: [] };
  /** @type {Map<number, number>} */
  const weights = new Map();
  for (const [position, weight] of heads.flatMap(({ lines }) => lines.partners(end))) {
    weights.set(position, Math.max(weight, weights.get(position) ?? 0));
  }
  const partners = [...weights].sort((a, b) => b[1] - a[1]).map(([position]) => position);
  return end.side === "query" ? { query: [end.at], key: partners } : { query: partners, key: [end.at] };
}
