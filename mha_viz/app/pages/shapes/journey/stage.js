// @ts-check
// The large picture: cells on a canvas, boxes, lines and texts over them.

import { find } from "../../../browser/dom.js";
import { cellAt, paint } from "./cells.js";
import { Marks } from "./marks.js";

/** @import { Cells, Point } from "./cells.js" */
/** @import { Mark } from "./marks.js" */

/**
 * @typedef {object} Scene
 * @property {string} step
 * @property {string} question
 * @property {number} height
 * @property {(Cells | Mark)[]} items
 * @property {string} sentence
 * @property {string[]} shown
 * @property {string} still the step whose last frame stands for this one where nothing moves
 */

const WIDEST = 1.4; // times its own size that a scene is drawn

export class Stage {
  /** @param {ParentNode} parent */
  constructor(parent) {
    this.place = find(parent, ".stage");
    this.canvas = /** @type {HTMLCanvasElement} */ (find(this.place, "canvas"));
    this.svg = /** @type {SVGElement} */ (/** @type {unknown} */ (find(this.place, "svg")));
    /** @type {Map<string, CanvasImageSource>} */
    this.images = new Map();
    /** @type {Cells[]} */
    this.cells = [];
    this.frame = 0;
    this.zoom = 1;
    this.drawn = "";
    /** @type {Scene | undefined} */
    this.scene = undefined;
    this.marks = new Marks(this.svg, []);
  }

  /**
   * @param {Scene} scene
   * @param {number} width of the scene
   * @param {number} frame
   * @param {number} least the height that is kept, so that nothing below moves from step to step
   */
  show(scene, width, frame, least = 0) {
    const zoom = Math.min(this.place.clientWidth / width, WIDEST), density = window.devicePixelRatio || 1;
    if (!(zoom > 0)) return;
    const drawn = [width, zoom, density, least].join();
    if (scene !== this.scene || drawn !== this.drawn) this.build(scene, width, zoom, density, least);
    Object.assign(this, { scene, drawn, frame, zoom });
    const context = this.canvas.getContext("2d");
    if (!context) return;
    context.clearRect(0, 0, this.canvas.width, this.canvas.height);
    paint(context, this.cells, this.images, frame, zoom * density);
    this.marks.show(frame);
  }

  /**
   * @param {Scene} scene
   * @param {number} width
   * @param {number} zoom
   * @param {number} density
   * @param {number} least
   */
  build(scene, width, zoom, density, least) {
    const [across, down] = [width * zoom, scene.height * zoom];
    const pixels = [Math.round(across * density), Math.round(down * density)];
    if (this.canvas.width !== pixels[0] || this.canvas.height !== pixels[1]) {
      [this.canvas.width, this.canvas.height] = pixels;
    }
    for (const node of [this.canvas, this.svg]) {
      node.style.width = `${across}px`;
      node.style.height = `${down}px`;
    }
    this.place.style.height = `${Math.max(down, least * zoom)}px`;
    this.svg.setAttribute("viewBox", `0 0 ${width} ${scene.height}`);
    this.cells = scene.items.filter((item) => item.kind === "cells");
    const marks = scene.items.filter((item) => item.kind !== "cells");
    this.marks = new Marks(this.svg, marks, Math.max(1, 1 / zoom)); // no text gets smaller
  }

  /**
   * The cell, the token or the head under the pointer.
   * @param {MouseEvent} event
   * @returns {{ point: Point } | Record<string, number> | null}
   */
  under(event) {
    const target = /** @type {Element | undefined} */ (event.composedPath()[0]);
    const selects = target instanceof SVGElement ? target.dataset.selects : undefined;
    if (selects) {
      const [name, number] = selects.split(" ");
      return { [name]: Number(number) };
    }
    const { left, top } = this.canvas.getBoundingClientRect();
    const point = cellAt(this.cells, this.frame, (event.clientX - left) / this.zoom, (event.clientY - top) / this.zoom);
    return point && { point };
  }
}
