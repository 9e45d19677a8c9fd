// @ts-check
// Three canvases on top of one another: the lines at rest, the labels, and the highlighted lines.

/** @typedef {{ width: number, height: number }} Size */

const SHARPEST = 3; // device pixels per CSS pixel; more would be slow to fill

/**
 * Gives a canvas a size in CSS pixels, and returns its context, which is empty.
 * @param {HTMLCanvasElement} canvas
 * @param {Size} size
 */
export function resize(canvas, { width, height }) {
  const ratio = Math.min(devicePixelRatio || 1, SHARPEST);
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  canvas.style.width = `${width}px`;
  canvas.style.height = `${height}px`;
  const pen = context(canvas);
  pen.scale(ratio, ratio);
  return pen;
}

/** @param {HTMLCanvasElement} canvas */
export function context(canvas) {
  return /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
}

/**
 * Canvases, the lowest first, as one PNG file.
 * @param {HTMLCanvasElement[]} canvases
 * @param {Size} size
 * @param {string} background
 * @returns {Promise<Blob | null>}
 */
export function png(canvases, size, background) {
  const sheet = document.createElement("canvas");
  const pen = resize(sheet, size);
  pen.fillStyle = background;
  pen.fillRect(0, 0, size.width, size.height);
  for (const canvas of canvases) pen.drawImage(canvas, 0, 0, size.width, size.height);
  return new Promise((done) => sheet.toBlob(done, "image/png"));
}
