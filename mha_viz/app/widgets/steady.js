// @ts-check
// A chart that stays while its figure changes. Streamlit removes a chart before it draws the next
// one: for some frames there is none, then one of another size.

import { component } from "../browser/component.js";
import { find } from "../browser/dom.js";
import { plotly } from "../browser/plotly.js";

/** @import { Figure } from "../browser/plotly.js" */
/** @typedef {{ spec: string, alt: string, config: object }} Data the figure as JSON, and in words */

const WAIT = 30; // milliseconds until Plotly is looked for again

class SteadyChart {
  /** @param {HTMLElement} place @param {Data} data */
  constructor(place, data) {
    /** @type {Figure} */
    this.place = /** @type {any} */ (place);
    this.data = data;
    this.drawnSpec = "";
    this.frame = "";
    this.width = this.height = 0;
    /** @type {Promise<unknown> | undefined} */
    this.drawn = undefined;
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    this.later = undefined;
    this.observer = new ResizeObserver(() => this.fit());
    this.observer.observe(place);
  }

  /** @param {Data} data */
  update(data) {
    this.data = data;
    this.place.setAttribute("aria-label", data.alt);
    if (data.spec === this.drawnSpec) return;
    this.drawnSpec = data.spec;
    this.draw();
  }

  fit() {
    const { clientWidth, clientHeight } = this.place;
    if (clientWidth !== this.width || clientHeight !== this.height) this.draw();
  }

  // Plotly comes with any of Streamlit's own charts on the page.
  draw() {
    clearTimeout(this.later);
    const library = plotly();
    if (!library) {
      this.later = setTimeout(() => this.draw(), WAIT);
      return;
    }
    const { clientWidth: width, clientHeight: height } = this.place;
    if (!width || !height) return; // the observer draws it as soon as there is room
    Object.assign(this, { width, height });
    // Plotly writes into what it is given: a zoom must not stay behind in the figure.
    const { data, layout } = JSON.parse(this.data.spec);
    const frame = JSON.stringify([layout, data.map((/** @type {any} */ trace) => trace.colorbar)]);
    if (this.frame !== frame) this.renew();
    this.frame = frame;
    this.drawn = library.react(this.place, data, { ...layout, width, height }, this.data.config);
  }

  // A picture that differs in more than its values gets a new place: in the old one Plotly would
  // keep the space of a colour bar that is no longer there, and the old ranges.
  renew() {
    const old = this.place;
    if (old.data === undefined) return; // nothing was drawn there
    this.observer.disconnect();
    this.place = /** @type {Figure} */ (old.cloneNode(false));
    this.place.classList.remove("js-plotly-plot");
    old.replaceWith(this.place);
    this.clear(old);
    this.observer.observe(this.place);
  }

  destroy() {
    clearTimeout(this.later);
    this.observer.disconnect();
    this.clear(this.place);
  }

  // Plotly still uses the place after it has drawn, and needs what a purge would remove.
  /** @param {Figure} place */
  clear(place) {
    Promise.resolve(this.drawn).finally(() => plotly()?.purge(place));
  }
}

export default component(
  (parent, _, /** @type {Data} */ data) => new SteadyChart(find(parent, ".steady"), data),
);
