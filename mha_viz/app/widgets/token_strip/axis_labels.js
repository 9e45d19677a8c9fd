// @ts-check
// Labels of the heatmap's axes and colour bar: that of the selected token stands out, and labels that
// would touch their neighbour are hidden.

/** @import { Figure } from "../../browser/plotly.js" */
/** @typedef {SVGElement & { __data__?: { x: number } }} Tick an element with Plotly's data */

/**
 * Makes the label of a position bold and coloured, and hides labels that would touch.
 * @param {Figure} figure
 * @param {"x" | "y"} axis
 * @param {number} selected
 * @param {string} colour of the selected one
 * @param {string} ink of the others
 */
export function markTick(figure, axis, selected, colour, ink) {
  if (!figure._fullLayout) return;
  const { l2p, tickfont } = figure._fullLayout[`${axis}axis`];
  /** @type {{ tick: Tick, at: number, own: boolean }[]} */
  const ticks = [];
  for (const tick of /** @type {NodeListOf<Tick>} */ (figure.querySelectorAll(`.${axis}tick text`))) {
    if (tick.__data__) ticks.push({ tick, at: l2p(tick.__data__.x), own: tick.__data__.x === selected });
  }
  const own = ticks.find((tick) => tick.own);
  let last = -Infinity;
  for (const { tick, at, own: isOwn } of ticks.sort((a, b) => a.at - b.at)) {
    const touchesOwn = own && !isOwn && Math.abs(at - own.at) < tickfont.size;
    const shown = isOwn || (!touchesOwn && at - last >= tickfont.size);
    if (shown) last = at;
    tick.style.visibility = shown ? "" : "hidden";
    tick.style.fontWeight = isOwn ? "700" : "";
    tick.style.fill = isOwn ? colour : ink;
  }
}

/**
 * Hides the numbers of a horizontal colour bar that would overlap the number before them.
 * @param {Figure} figure
 */
export function thinColourBar(figure) {
  const texts = [...figure.querySelectorAll(".cbaxis text")].map((text) => (
    { text: /** @type {SVGElement} */ (text), box: text.getBoundingClientRect() }
  )).sort((a, b) => a.box.left - b.box.left);
  const vertical = texts[0]?.box.left === texts.at(-1)?.box.left;
  let right = -Infinity;
  for (const { text, box } of texts) {
    const shown = vertical || box.left >= right + box.height / 6;
    text.style.visibility = shown ? "" : "hidden";
    if (shown && box.width) right = box.right;
  }
}
