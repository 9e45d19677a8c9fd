// @ts-check
// How a head is written: "L5 H1" for people, "L5H1" in links and in messages to Python.

/** @typedef {{ layer: number, head: number }} Head */

/** @param {Head} head */
export function headLabel({ layer, head }) {
  return `L${layer} H${head}`;
}

/** @param {Head} head */
export function headKey({ layer, head }) {
  return `L${layer}H${head}`;
}

/**
 * The head that a label or a key names.
 * @param {string} text
 * @returns {Head}
 */
export function parseHead(text) {
  const found = /^L(\d{1,4}) ?H(\d{1,4})$/i.exec(text.trim());
  if (!found) throw new Error(`“${text}” does not name a head`);
  return { layer: Number(found[1]), head: Number(found[2]) };
}

/** @type {Record<string, [layers: number, heads: number]>} */
const STEPS = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] };

/**
 * The head that an arrow key moves to, with one row per layer; null for other keys.
 * @param {Head} from
 * @param {string} key
 * @returns {Head | null}
 */
export function neighbour({ layer, head }, key) {
  if (!Object.hasOwn(STEPS, key)) return null;
  const [layers, heads] = STEPS[key];
  return { layer: layer + layers, head: head + heads };
}
