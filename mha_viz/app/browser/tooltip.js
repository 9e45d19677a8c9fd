// @ts-check
// One tooltip for all figures, for what Plotly's own cannot show.

/** @import { Palette, Scale } from "./colours.js" */

const ID = "mha-viz-tip";

function tooltip() {
  const found = document.getElementById(ID);
  if (found) return found;
  const node = document.createElement("div");
  node.id = ID;
  node.style.display = "none";
  document.body.append(node);
  return node;
}

export function hideTooltip() {
  tooltip().style.display = "none";
}

/**
 * Shows lines of nodes and text beside the pointer, within the window.
 * @param {(Node | string)[][]} lines
 * @param {{ clientX: number, clientY: number }} pointer
 * @param {Pick<Palette, "surface" | "ink" | "query">} palette
 */
export function showTooltip(lines, pointer, { surface, ink, query }) {
  const node = tooltip();
  node.style.cssText = `position:fixed;z-index:1000;pointer-events:none;padding:6px 10px;border-radius:6px;
    background:${surface};color:${ink};border:1px solid ${query};
    font:14px/1.4 "Source Code Pro",monospace;white-space:pre;max-width:90vw`;
  node.replaceChildren(...lines.map((parts) => {
    const line = document.createElement("div");
    line.append(...parts);
    return line;
  }));
  const { width, height } = node.getBoundingClientRect();
  const above = pointer.clientY + 14 + height > innerHeight;
  node.style.left = `${Math.max(4, Math.min(pointer.clientX + 14, innerWidth - width - 4))}px`;
  node.style.top = `${Math.max(4, pointer.clientY + (above ? -height - 14 : 14))}px`;
}

/**
 * What a tooltip adds to the value of a pooled cell; "" where a cell is one pair of tokens.
 * @param {number} block tokens per side of a cell
 * @param {Scale} [scale] that the cell is coloured by
 */
export function pooledNote(block, scale) {
  if (block === 1) return "";
  const largest = scale === "share" ? "the largest relative to uniform" : "the largest";
  return `, ${largest} in a ${block} × ${block} block`;
}
