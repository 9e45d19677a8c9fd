// @ts-check
// The origin of a picture, written into its file: metadata of an SVG, a tEXt chunk of a PNG.

const NAME = "Provenance";
const HEADER = 33; // bytes before a PNG's second chunk: the signature and IHDR

/**
 * The picture with its origin, a JSON text of ASCII characters.
 * @param {Blob} file
 * @param {string} format
 * @param {string} origin
 * @returns {Promise<Blob>}
 */
export async function withOrigin(file, format, origin) {
  if (format === "svg") {
    const text = await file.text();
    return new Blob([svgWithOrigin(text, origin)], { type: "image/svg+xml" });
  }
  const bytes = new Uint8Array(await file.arrayBuffer());
  return new Blob([/** @type {BlobPart} */ (pngWithOrigin(bytes, origin))], { type: "image/png" });
}

/**
 * @param {string} svg
 * @param {string} origin
 */
export function svgWithOrigin(svg, origin) {
  const escaped = origin.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
  const end = svg.indexOf(">", svg.indexOf("<svg")) + 1;
  return `${svg.slice(0, end)}<metadata>${escaped}</metadata>${svg.slice(end)}`;
}

/**
 * @param {Uint8Array} png
 * @param {string} origin
 */
export function pngWithOrigin(png, origin) {
  const data = new TextEncoder().encode(`tEXt${NAME}\0${origin}`);
  const chunk = new Uint8Array(data.length + 8);
  const view = new DataView(chunk.buffer);
  view.setUint32(0, data.length - 4); // the type does not count
  chunk.set(data, 4);
  view.setUint32(data.length + 4, crc32(data));
  const joined = new Uint8Array(png.length + chunk.length);
  joined.set(png.subarray(0, HEADER));
  joined.set(chunk, HEADER);
  joined.set(png.subarray(HEADER), HEADER + chunk.length);
  return joined;
}

/**
 * The checksum of PNG chunks (ISO 3309).
 * @param {Uint8Array} bytes
 */
function crc32(bytes) {
  let crc = ~0;
  for (const byte of bytes) {
    crc ^= byte;
    for (let bit = 0; bit < 8; bit++) crc = (crc >>> 1) ^ (crc & 1 ? 0xedb88320 : 0);
  }
  return ~crc >>> 0;
}
