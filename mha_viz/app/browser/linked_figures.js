// @ts-check
// Figures that a component listens to and draws over. Any run of Streamlit may replace a
// figure, so each is looked up again whenever the page changes.

import { addOverlay } from "./overlay.js";
import { findFigure, isDrawn } from "./plotly.js";
import { hideTooltip } from "./tooltip.js";

/** @import { Figure } from "./plotly.js" */
/** @typedef {Record<string, (event: any) => void>} Handlers Plotly's events by name */
/** @typedef {{ figure: Figure, overlay: HTMLElement, remove: () => void }} Linked */

export class LinkedFigures {
  /**
   * @param {(name: string, figure: Figure) => Handlers} handlersOf called once for each figure
   * @param {() => void} changed called when a figure is linked
   */
  constructor(handlersOf, changed) {
    this.handlersOf = handlersOf;
    this.changed = changed;
    /** @type {Map<string, string>} */
    this.selectors = new Map();
    /** @type {Map<string, Linked>} */
    this.linked = new Map();
    this.ended = false;
    this.observer = new MutationObserver(() => this.attach());
    this.observer.observe(document.body, { childList: true, subtree: true });
  }

  /** @param {string} name */
  get(name) {
    return this.linked.get(name);
  }

  /** @param {Iterable<[name: string, selector: string]>} selectors */
  follow(selectors) {
    this.selectors = new Map(selectors);
    this.attach();
  }

  attach() {
    if (this.ended) return;
    for (const [name, selector] of this.selectors) {
      const before = this.linked.get(name);
      const found = findFigure(selector);
      if (before && before.figure === found && before.overlay.isConnected) continue;
      before?.remove();
      this.linked.delete(name);
      if (found && isDrawn(found)) this.link(name, found);
      else if (found) requestAnimationFrame(() => this.attach());
    }
  }

  /** @param {string} name @param {Figure} figure */
  link(name, figure) {
    const overlay = addOverlay(figure);
    const handlers = this.handlersOf(name, figure);
    for (const [event, handler] of Object.entries(handlers)) figure.on(event, handler);
    const remove = () => {
      for (const [event, handler] of Object.entries(handlers)) figure.removeListener?.(event, handler);
      overlay.remove();
      hideTooltip();
    };
    this.linked.set(name, { figure, overlay, remove });
    this.changed();
  }

  destroy() {
    this.ended = true;
    this.observer.disconnect();
    for (const { remove } of this.linked.values()) remove();
  }
}
