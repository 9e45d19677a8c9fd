// @ts-check
// From a weight to a colour, as mha_viz/figures/scale.py and theme.py do it in Python.

/** @typedef {"sqrt" | "weight" | "share"} Scale */

/**
 * The colours of one scheme; mha_viz/figures/theme.py says what each is for.
 * @typedef {object} Palette
 * @property {string} page
 * @property {string} surface
 * @property {string} ink
 * @property {string} muted
 * @property {string} accent
 * @property {string} control
 * @property {string} query
 * @property {string} query_fill
 * @property {string} key
 * @property {string[]} sequential
 * @property {string[]} categorical
 * @property {number} ink_flips_at
 * @property {string} ink_on_strong
 */

/** @typedef {{ light: Palette, dark: Palette }} Palettes */

const OCTAVES = [-3, 4]; // of "share": log2 of weight / uniform weight, clipped

/**
 * Where a weight lies on the colour scale, from 0 to 1.
 * @param {number} weight
 * @param {Scale} scale
 * @param {number} query position of the token that looks
 */
export function scalePosition(weight, scale, query) {
  if (scale === "weight") return weight;
  if (scale === "sqrt") return Math.sqrt(weight);
  const [low, high] = OCTAVES;
  const octaves = Math.log2(Math.max(weight * (query + 1), 2 ** low));
  return (Math.min(octaves, high) - low) / (high - low);
}

/**
 * The colour at a position from 0 to 1 between evenly spaced ones, as "rgb(r,g,b)".
 * @param {string[]} colours as "#RRGGBB"
 * @param {number} position
 */
export function colourAt(colours, position) {
  return `rgb(${channelsAt(colours, position).join(",")})`;
}

/**
 * The same as red, green and blue from 0 to 255.
 * @param {string[]} colours as "#RRGGBB"
 * @param {number} position
 */
export function channelsAt(colours, position) {
  const x = Math.min(Math.max(position, 0), 1) * (colours.length - 1);
  const i = Math.min(Math.floor(x), colours.length - 2);
  const low = rgb(colours[i]), high = rgb(colours[i + 1]);
  return low.map((value, c) => Math.round(value + (high[c] - value) * (x - i)));
}

/**
 * The scheme of a page with this background; null while the page has none.
 * @param {string} background a CSS colour, "#RRGGBB" or "rgb(r, g, b)"
 * @returns {"light" | "dark" | null}
 */
export function schemeOf(background) {
  if (!background) return null;
  return luminance(background) < 0.5 ? "dark" : "light";
}

/** @param {string} colour */
function luminance(colour) {
  const [r, g, b] = colour.startsWith("#")
    ? rgb(colour)
    : (colour.match(/[\d.]+/g) ?? [255, 255, 255]).map(Number);
  return (0.2126 * r + 0.7152 * g + 0.0722 * b) / 255;
}

/** @param {string} hex "#RRGGBB" */
function rgb(hex) {
  return [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16));
}
