// @ts-check
// A chart that stays on the page while its figure changes. Streamlit removes a chart before it draws
// the next one, so for a few frames there is no chart, and then a chart of another size.

import { component } from "../browser/component.js";
import { find } from "../browser/dom.js";
import { NextFrame } from "../browser/next_frame.js";
import { receive } from "../browser/parcel.js";
import { plotly } from "../browser/plotly.js";

/** @import { Figure } from "../browser/plotly.js" */
/** @typedef {{ spec: string, shows: string, alt: string, config: object }} Data the figure as JSON, what it shows */
/**
 * What is to be shown, with the colours of its cells if the browser has them before Python answers.
 * @typedef {{ shows: string, cells: ImageData | null }} Ahead
 */

const WAIT = 30; // milliseconds between two checks whether Plotly has been loaded

class SteadyChart {
  /** @param {HTMLElement} place @param {Data} data */
  constructor(place, data) {
    /** @type {Figure} */
    this.place = /** @type {any} */ (place);
    this.data = data;
    this.drawnSpec = "";
    /** @type {Ahead | null} */
    this.ahead = null;
    this.gap = 0; // pixels between two cells
    this.frame = "";
    this.width = this.height = 0;
    /** @type {Promise<unknown> | undefined} */
    this.drawn = undefined;
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    this.later = undefined;
    this.observer = new ResizeObserver(() => this.fit());
    this.observer.observe(place);
    this.next = new NextFrame(() => this.paintAhead());
    this.endAhead = receive("ahead", (ahead) => this.goAhead(ahead));
  }

  /** @param {Data} data */
  update(data) {
    this.data = data;
    this.place.setAttribute("aria-label", data.alt);
    this.catchUp();
  }

  // Python's figures of selections that were passed in the meantime are not drawn.
  catchUp() {
    const behind = this.ahead && this.ahead.shows !== this.data.shows;
    if (!behind && this.data.spec !== this.drawnSpec) this.draw();
  }

  /** @param {Ahead | null} ahead */
  goAhead(ahead) {
    this.ahead = ahead;
    if (ahead?.cells) this.next.request();
    else this.catchUp();
  }

  // Plotly draws cells as one image. Replacing that image takes a tenth of the time that
  // Plotly takes to draw, which it does once Python answers.
  paintAhead() {
    const image = /** @type {SVGImageElement | null} */ (this.place.querySelector(".hm image")), { gap } = this;
    if (!image || !this.ahead?.cells || this.ahead.shows === this.data.shows) return;
    const side = (/** @type {string} */ name) => Number(image.getAttribute(name));
    if (!gap) image.style.imageRendering = "pixelated";
    image.setAttribute("href", pictureOf(this.ahead.cells, side("width"), side("height"), gap));
    this.drawnSpec = "";
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
    // Plotly changes the objects that it is given, so it gets fresh ones: a zoom must not stay in them.
    const { data, layout } = JSON.parse(this.data.spec);
    this.drawnSpec = this.data.spec;
    this.gap = data[0].xgap ?? 0;
    const frame = JSON.stringify([layout, data.map((/** @type {any} */ trace) => trace.colorbar)]);
    if (this.frame !== frame) this.renew();
    this.frame = frame;
    this.drawn = library.react(this.place, data, { ...layout, width, height }, this.data.config);
    this.drawn.then(() => this.paintAhead());
  }

  // A figure that differs in more than its values gets a new element: in the old one, Plotly would
  // keep the ranges, and the space of a colour bar that is no longer there.
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
    this.endAhead();
    this.next.destroy();
    this.observer.disconnect();
    this.clear(this.place);
  }

  // Purges after the last drawing has ended, because Plotly still needs what a purge removes.
  /** @param {Figure} place */
  clear(place) {
    Promise.resolve(this.drawn).finally(() => plotly()?.purge(place));
  }
}

/**
 * The cells as a picture of that size, as a data address.
 * @param {ImageData} cells
 * @param {number} width
 * @param {number} height
 * @param {number} gap pixels between two cells
 */
function pictureOf(cells, width, height, gap) {
  const small = Object.assign(document.createElement("canvas"), { width: cells.width, height: cells.height });
  small.getContext("2d")?.putImageData(cells, 0, 0);
  if (!gap) return small.toDataURL(); // the page enlarges it
  const canvas = Object.assign(document.createElement("canvas"), { width, height });
  const context = canvas.getContext("2d");
  if (!context) return "";
  context.imageSmoothingEnabled = false;
  context.drawImage(small, 0, 0, width, height);
  const edge = (/** @type {number} */ share) => Math.round(share) - gap + Math.round(gap / 2);
  for (let i = 0; i <= cells.width; i++) context.clearRect(edge((i * width) / cells.width), 0, gap, height);
  for (let i = 0; i <= cells.height; i++) context.clearRect(0, edge((i * height) / cells.height), width, gap);
  return canvas.toDataURL();
}

export default component(
  (parent, _, /** @type {Data} */ data) => new SteadyChart(find(parent, ".steady"), data),
);
