// @ts-check
// Overlays on a Plotly figure: rectangles in the figure's own coordinates.

/** @import { Figure } from "./plotly.js" */

/**
 * An empty layer over the figure that lets the pointer through.
 * @param {Figure} figure
 */
export function addOverlay(figure) {
  const overlay = document.createElement("div");
  overlay.className = "mha-viz-marks";
  overlay.style.cssText = "position:absolute;inset:0;pointer-events:none;z-index:5;overflow:hidden";
  if (getComputedStyle(figure).position === "static") figure.style.position = "relative";
  figure.append(overlay);
  return overlay;
}

/**
 * A rectangle from (x0, y0) to (x1, y1) with this style, at least `least` pixels per side; null
 * if it lies outside the visible part.
 * @param {Figure} figure
 * @param {[x0: number, x1: number, y0: number, y1: number]} edges
 * @param {string} style
 * @param {number} [least]
 */
export function rectangle(figure, [x0, x1, y0, y1], style, least = 1) {
  const { xaxis, yaxis } = figure._fullLayout ?? {};
  if (!xaxis?.l2p || !yaxis?.l2p) return null;
  /** @param {number} value @param {import("./plotly.js").Axis} axis */
  const clamp = (value, axis) => Math.min(Math.max(axis.l2p(value), 0), axis._length) + axis._offset;
  const left = clamp(x0, xaxis), right = clamp(x1, xaxis);
  const [top, bottom] = [clamp(y0, yaxis), clamp(y1, yaxis)].sort((a, b) => a - b);
  if (right - left < 0.2 || bottom - top < 0.2) return null;
  const width = Math.max(right - left, least), height = Math.max(bottom - top, least);
  const node = document.createElement("div");
  node.style.cssText = "position:absolute;box-sizing:border-box;border-radius:2px;" +
    `left:${(left + right - width) / 2}px;top:${(top + bottom - height) / 2}px;` +
    `width:${width}px;height:${height}px;${style}`;
  return node;
}
