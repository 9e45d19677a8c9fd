// The link between pictures of query and key and the choice of both: a press on a cell or on a rung
// of the ladder goes to Python as one state, "pick"; what is chosen is ringed here, over figures
// that stay as they are.

const instances = new WeakMap();

export default function ({ data, parentElement, setStateValue }) {
  let cells = instances.get(parentElement);
  if (!cells) {
    cells = new Cells();
    instances.set(parentElement, cells);
  }
  cells.send = setStateValue;
  cells.update(data);
  return () => {
    cells.destroy();
    instances.delete(parentElement);
  };
}

class Cells {
  constructor() {
    this.plots = new Map();
    this.seq = 0;
    this.observer = new MutationObserver(() => this.attach());
    this.observer.observe(document.body, { childList: true, subtree: true });
  }

  destroy() {
    this.observer.disconnect();
    cancelAnimationFrame(this.pending);
    for (const plot of this.plots.values()) plot.remove();
  }

  update(data) {
    this.data = data;
    this.seq = Math.max(this.seq, data.ack);
    this.attach();
    this.frame();
  }

  attach() {
    for (const name of [...this.data.maps, ...this.data.rungs]) {
      const plot = this.plots.get(name);
      const found = document.querySelector(`.st-key-${name} .js-plotly-plot`);
      if (plot && plot.gd === found && plot.overlay.isConnected) continue;
      plot?.remove();
      this.plots.delete(name);
      if (found?.on && found._fullLayout?.xaxis) this.plots.set(name, this.connect(name, found));
      else if (found) requestAnimationFrame(() => this.attach());
    }
  }

  connect(name, gd) {
    const overlay = document.createElement("div");
    overlay.className = "rings";
    overlay.style.cssText = "position:absolute;inset:0;pointer-events:none;z-index:5;overflow:hidden";
    gd.style.position = "relative";
    gd.append(overlay);
    const handlers = {
      plotly_click: ({ points }) => this.pick(name, points[0]),
      ...(this.data.maps.includes(name) && {
        plotly_hover: ({ points, event }) => {
          gd.querySelector(".hoverlayer")?.style.setProperty("display", "none");
          this.tooltip(points[0], event);
        },
        plotly_unhover: () => (tip().style.display = "none"),
      }),
      plotly_afterplot: () => this.frame(),
    };
    for (const [event, handler] of Object.entries(handlers)) gd.on(event, handler);
    const remove = () => {
      for (const [event, handler] of Object.entries(handlers)) gd.removeListener?.(event, handler);
      overlay.remove();
      tip().style.display = "none";
    };
    this.frame();
    return { gd, overlay, remove };
  }

  // The first query and the first key of a cell, which is a block of a pooled map.
  cell({ x, y }) {
    const half = (this.data.block - 1) / 2;
    return { query: Math.round(y - half), key: Math.round(x - half) };
  }

  // Of a pooled cell, Python finds the strongest pair.
  pick(name, point) {
    let choice;
    if (this.data.maps.includes(name)) {
      choice = this.cell(point);
    } else {
      const [key] = point.customdata;
      if (key === null) return;
      choice = { key };
    }
    this.seq += 1;
    this.send("pick", { ...choice, map: name, words: this.data.words, seq: this.seq });
  }

  // Plotly knows the few tokens on its axes; a tooltip names all of them.
  tooltip(point, event) {
    const { block, tokens, colours } = this.data;
    const { query, key } = this.cell(point);
    const name = (first) => {
      const end = Math.min(first + block, tokens.length) - 1;
      return block > 1 ? `${tokens[first]} (${first}) … ${tokens[end]} (${end})` : `${tokens[first]} (${first})`;
    };
    const box = tip();
    box.style.cssText = `position:fixed;z-index:1000;pointer-events:none;padding:6px 10px;border-radius:6px;
      background:${colours.surface};color:${colours.ink};border:1px solid ${colours.query};
      font:14px/1.4 "Source Code Pro",monospace;white-space:pre;max-width:90vw`;
    const lines = [`from ${name(query)}`, `to   ${name(key)}`].map((text) => {
      const line = document.createElement("div");
      line.textContent = text;
      return line;
    });
    const value = document.createElement("b");
    const most = block > 1 ? ` is the largest of ${block} × ${block}` : "";
    value.textContent = `${Number(point.customdata ?? point.z).toPrecision(4).replace("-", "−")}${most}`;
    box.replaceChildren(...lines, value);
    const { width, height } = box.getBoundingClientRect();
    const above = event.clientY + 14 + height > innerHeight;
    box.style.left = `${Math.max(4, Math.min(event.clientX + 14, innerWidth - width - 4))}px`;
    box.style.top = `${Math.max(4, event.clientY + (above ? -height - 14 : 14))}px`;
  }

  // However many things change between two pictures on the screen, the marks are drawn once.
  frame() {
    this.pending ??= requestAnimationFrame(() => {
      this.pending = null;
      this.marks();
    });
  }

  marks() {
    const { query, key, maps, colours } = this.data;
    for (const name of maps) {
      const plot = this.plots.get(name);
      if (!plot) continue;
      const { xaxis } = plot.gd._fullLayout ?? {};
      const [low, high] = xaxis?.range ?? [0, 0];
      const row = box(plot.gd, low, high, query - 0.5, query + 0.5);
      const cell = key === null ? null : box(plot.gd, key - 0.5, key + 0.5, query - 0.5, query + 0.5, 5);
      if (row) row.style.cssText += `border:1px solid ${colours.query}`;
      if (cell) cell.style.cssText += `border:2px solid ${colours.query};box-shadow:0 0 0 1px ${colours.page}`;
      plot.overlay.replaceChildren(...[row, cell].filter(Boolean));
    }
  }
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

// A rectangle in the figure's own coordinates, at least `least` pixels a side.
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
