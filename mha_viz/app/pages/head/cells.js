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
    const overlay = layer(gd);
    overlay.className = "rings";
    const handlers = {
      plotly_click: ({ points }) => this.pick(name, points[0]),
      ...(this.data.maps.includes(name) && {
        plotly_hover: ({ points, event }) => {
          gd.querySelector(".hoverlayer")?.style.setProperty("display", "none");
          this.tooltip(points[0], event);
        },
        plotly_unhover: () => hideTip(),
      }),
      plotly_afterplot: () => this.frame(),
    };
    for (const [event, handler] of Object.entries(handlers)) gd.on(event, handler);
    const remove = () => {
      for (const [event, handler] of Object.entries(handlers)) gd.removeListener?.(event, handler);
      overlay.remove();
      hideTip();
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
    const most = block > 1 ? ` is the largest of ${block} × ${block}` : "";
    const value = Number(point.customdata ?? point.z).toPrecision(4).replace("-", "−");
    showTip([[`from ${name(query)}`], [`to   ${name(key)}`], [bold(value + most)]], event, colours);
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
