// @ts-check
// Paints the cells of a scene, and finds the cell under a pointer.

import { at, shareOf } from "./motion.js";

/** @import { Motion } from "./motion.js" */

/**
 * @typedef {object} Cells a part of an image, with gaps between its rows
 * @property {"cells"} kind
 * @property {string} image
 * @property {[number, number, number, number]} crop first column and row, columns, rows
 * @property {Motion} motion
 * @property {[number, number]} gap between rows, at the start and at the end
 * @property {boolean} asks whether a click selects a cell
 */

/** @typedef {{ image: string, row: number, column: number }} Point a pixel of an image */

/**
 * @param {CanvasRenderingContext2D} context
 * @param {Cells[]} items
 * @param {Map<string, CanvasImageSource>} images
 * @param {number} frame
 * @param {number} zoom pixels of the canvas for one of the scene
 */
export function paint(context, items, images, frame, zoom) {
  context.imageSmoothingEnabled = false;
  for (const item of items) {
    const image = images.get(item.image), { rect: [x, y, width], opacity } = at(item.motion, frame);
    if (!image || opacity <= 0) continue;
    const [column, row, columns, rows] = item.crop, { pitch, gap } = rowsOf(item, frame);
    context.globalAlpha = opacity;
    const left = Math.round(x * zoom), right = Math.round((x + width) * zoom);
    for (let r = 0; r < rows; r++) {
      const top = Math.round((y + r * pitch) * zoom), bottom = Math.round((y + (r + 1) * pitch - gap) * zoom);
      context.drawImage(
        image, column, row + r, columns, 1, left, top, Math.max(right - left, 1), Math.max(bottom - top, 1),
      );
    }
  }
  context.globalAlpha = 1;
}

/** @param {Cells} item @param {number} frame */
function rowsOf(item, frame) {
  const { rect } = at(item.motion, frame), [before, after] = item.gap;
  const gap = before + (after - before) * shareOf(item.motion, frame);
  return { pitch: (rect[3] + gap) / item.crop[3], gap };
}

/**
 * The cell at a place of the scene: of what was painted last, and is not too faint to be meant.
 * @param {Cells[]} items
 * @param {number} frame
 * @param {number} x
 * @param {number} y
 * @returns {Point | null}
 */
export function cellAt(items, frame, x, y) {
  for (const item of [...items].reverse()) {
    const { rect: [left, top, width, height], opacity } = at(item.motion, frame);
    if (!item.asks || opacity < 0.2 || x < left || y < top || x >= left + width || y >= top + height) continue;
    const [column, row, columns, rows] = item.crop, { pitch } = rowsOf(item, frame);
    return {
      image: item.image,
      row: row + Math.min(Math.floor((y - top) / pitch), rows - 1),
      column: column + Math.floor(((x - left) / width) * columns),
    };
  }
  return null;
}
