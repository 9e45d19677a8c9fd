// @ts-check
// The wheel over the grid moves from head to head, where the page has nothing to scroll.

import { withModifier } from "../../browser/dom.js";

/** @import { Head } from "../../browser/head_name.js" */
/** @import { TokenStrip } from "./token_strip.js" */

const STEP = 50; // pixels that a wheel reports for less than one notch; a touchpad reports many small turns
const LINE = 20; // pixels, where a browser reports lines
const SLACK = 60; // pixels: a message that comes and goes does not make a page to scroll

export class Wheel {
  /** @param {TokenStrip} strip */
  constructor(strip) {
    this.strip = strip;
    this.turned = 0;
    this.listener = (/** @type {WheelEvent} */ event) => this.turn(event);
    window.addEventListener("wheel", this.listener, { passive: false });
  }

  /** @param {WheelEvent} event */
  turn(event) {
    const [target] = event.composedPath();
    if (withModifier(event) || !(target instanceof Element) || !target.closest(".st-key-head_grid")) return;
    const page = target.closest("[data-testid=stMain]");
    if (!page || page.scrollHeight > page.clientHeight + SLACK) return;
    event.preventDefault();
    this.turned += event.deltaY * (event.deltaMode === WheelEvent.DOM_DELTA_LINE ? LINE : 1);
    const steps = Math.trunc(this.turned / STEP);
    if (!steps) return;
    this.turned = 0;
    const { head, data: { n_layers, n_heads } } = this.strip;
    this.strip.selectHead(following(head, Math.sign(steps), n_layers, n_heads));
  }

  destroy() {
    window.removeEventListener("wheel", this.listener);
  }
}

/**
 * The head that many steps on, row by row; it stops at the first and the last.
 * @param {Head} from
 * @param {number} steps
 * @param {number} n_layers
 * @param {number} n_heads
 * @returns {Head}
 */
export function following({ layer, head }, steps, n_layers, n_heads) {
  const to = Math.min(Math.max(layer * n_heads + head + steps, 0), n_layers * n_heads - 1);
  return { layer: Math.floor(to / n_heads), head: to % n_heads };
}
