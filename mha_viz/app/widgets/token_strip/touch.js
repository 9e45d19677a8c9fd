// @ts-check
// A finger that scrolls the page must neither zoom a figure nor select what it passes.

import { plotly } from "../../browser/plotly.js";

/** @import { Figure } from "../../browser/plotly.js" */

const TAP = 10; // pixels that a finger may move in a tap

export class Touch {
  /** @param {Figure} figure */
  constructor(figure) {
    this.figure = figure;
    this.coarse = matchMedia("(pointer: coarse)").matches;
    this.moved = false;
    let x = 0, y = 0;
    /** @type {AddEventListenerOptions} */
    const early = { passive: true, capture: true };
    figure.addEventListener("touchstart", ({ touches: [touch] }) => {
      [x, y] = [touch.clientX, touch.clientY];
      this.moved = false;
    }, early);
    figure.addEventListener("touchmove", ({ touches: [touch] }) => {
      if (Math.hypot(touch.clientX - x, touch.clientY - y) > TAP) this.moved = true;
    }, early);
  }

  // On a touch screen, dragging scrolls the page.
  endDragging() {
    if (!this.coarse || !this.figure._fullLayout?.dragmode) return;
    plotly()?.relayout(this.figure, { dragmode: false });
  }
}
