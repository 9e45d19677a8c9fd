// What lies over a figure of Plotly's: rectangles in its own coordinates, and one tooltip for all.

function layer(gd) {
  const overlay = document.createElement("div");
  overlay.style.cssText = "position:absolute;inset:0;pointer-events:none;z-index:5;overflow:hidden";
  if (getComputedStyle(gd).position === "static") gd.style.position = "relative";
  gd.append(overlay);
  return overlay;
}

// A rectangle at least `least` pixels a side, or null where it lies outside of what is shown.
function box(gd, x0, x1, y0, y1, least = 1) {
  const { xaxis, yaxis } = gd._fullLayout ?? {};
  if (!xaxis?.l2p || !yaxis?.l2p) return null;
  const clamp = (value, axis) => Math.min(Math.max(axis.l2p(value), 0), axis._length) + axis._offset;
  const left = clamp(x0, xaxis), right = clamp(x1, xaxis);
  const [top, bottom] = [clamp(y0, yaxis), clamp(y1, yaxis)].sort((a, b) => a - b);
  if (right - left < 0.2 || bottom - top < 0.2) return null;
  const width = Math.max(right - left, least), height = Math.max(bottom - top, least);
  const node = document.createElement("div");
  node.style.cssText = `position:absolute;box-sizing:border-box;border-radius:2px;` +
    `left:${(left + right - width) / 2}px;top:${(top + bottom - height) / 2}px;` +
    `width:${width}px;height:${height}px;`;
  return node;
}

function tip() {
  let node = document.getElementById("mha-viz-tip");
  if (!node) {
    node = document.createElement("div");
    node.id = "mha-viz-tip";
    node.style.display = "none";
    document.body.append(node);
  }
  return node;
}

function hideTip() {
  tip().style.display = "none";
}

// Lines, which are nodes or text, beside the pointer and within the window.
function showTip(lines, event, { surface, ink, query }) {
  const node = tip();
  node.style.cssText = `position:fixed;z-index:1000;pointer-events:none;padding:6px 10px;border-radius:6px;
    background:${surface};color:${ink};border:1px solid ${query};
    font:14px/1.4 "Source Code Pro",monospace;white-space:pre;max-width:90vw`;
  node.replaceChildren(...lines.map((parts) => {
    const line = document.createElement("div");
    line.append(...parts);
    return line;
  }));
  const { width, height } = node.getBoundingClientRect();
  const above = event.clientY + 14 + height > innerHeight;
  node.style.left = `${Math.max(4, Math.min(event.clientX + 14, innerWidth - width - 4))}px`;
  node.style.top = `${Math.max(4, event.clientY + (above ? -height - 14 : 14))}px`;
}

function bold(text) {
  const node = document.createElement("b");
  node.textContent = text;
  return node;
}
