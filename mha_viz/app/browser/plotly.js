// @ts-check
// The parts of Plotly that the browser code uses. Streamlit loads Plotly with the first chart.

/**
 * @typedef {object} Axis
 * @property {(value: number) => number} l2p from a value to pixels
 * @property {number} _length pixels
 * @property {number} _offset pixels from the figure's edge
 * @property {number[]} range
 * @property {{ size: number }} tickfont
 */

/**
 * @typedef {object} FullLayout
 * @property {Axis} xaxis
 * @property {Axis} yaxis
 * @property {string | false} dragmode
 * @property {string} clickmode
 * @property {{ l: number, w: number }} _size
 */

/** @typedef {{ x: number, y: number, z?: number, customdata?: any }} Point */
/** @typedef {{ points: Point[], event: PointerEvent }} PointEvent */

/**
 * @typedef {HTMLElement & {
 *   on: (event: string, handler: (event: any) => void) => void,
 *   removeListener?: (event: string, handler: (event: any) => void) => void,
 *   data?: object[],
 *   layout?: object,
 *   _fullLayout?: FullLayout,
 * }} Figure
 */

/**
 * @typedef {object} Library
 * @property {(figure: Element, change: object) => Promise<unknown>} relayout
 * @property {(place: Element, data: object[], layout: object, config: object) => Promise<unknown>} react
 * @property {(figure: Element) => void} purge
 * @property {(figure: object, options: object) => Promise<string>} toImage as a data address
 * @property {{
 *   unhover: (figure: Element) => void,
 *   hover: (figure: Element, event: Event, subplot: string) => void,
 * }} Fx
 */

/** @returns {Library | undefined} */
export function plotly() {
  return /** @type {{ Plotly?: Library }} */ (/** @type {unknown} */ (globalThis)).Plotly;
}

/**
 * The figure that a selector finds; it may not be drawn yet.
 * @param {string} selector
 * @returns {Figure | null}
 */
export function findFigure(selector) {
  return document.querySelector(selector);
}

/**
 * Whether the figure has been drawn and has axes.
 * @param {Figure} figure
 */
export function isDrawn(figure) {
  return "on" in figure && Boolean(figure._fullLayout?.xaxis);
}

/**
 * Hides Plotly's own tooltip until the pointer is on another point.
 * @param {Figure} figure
 */
export function hidePlotlyTooltip(figure) {
  const layer = /** @type {SVGElement | null} */ (figure.querySelector(".hoverlayer"));
  layer?.style.setProperty("display", "none");
}
