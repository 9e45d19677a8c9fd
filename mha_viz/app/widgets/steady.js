// A chart that stays while its figure changes. Streamlit takes a chart away before it draws the
// next one: for some frames there is none, then one of another size. Plotly itself comes with any
// chart of Streamlit's on the page, and is waited for.

const charts = new WeakMap();

export default function ({ data, parentElement }) {
  let chart = charts.get(parentElement);
  if (!chart) {
    chart = new Chart(parentElement.querySelector(".steady"));
    charts.set(parentElement, chart);
  }
  chart.show(data);
  return () => {
    chart.end();
    charts.delete(parentElement);
  };
}

class Chart {
  constructor(div) {
    this.div = div;
    this.observer = new ResizeObserver(() => this.fit());
    this.observer.observe(div);
  }

  show({ spec, alt, config }) {
    this.div.setAttribute("aria-label", alt);
    if (spec === this.spec) return;
    this.spec = spec;
    this.config = config;
    this.draw();
  }

  fit() {
    const { clientWidth, clientHeight } = this.div;
    if (clientWidth !== this.width || clientHeight !== this.height) this.draw();
  }

  draw() {
    clearTimeout(this.later);
    if (!window.Plotly) {
      this.later = setTimeout(() => this.draw(), 30);
      return;
    }
    const { clientWidth: width, clientHeight: height } = this.div;
    if (!width || !height) return; // the observer draws it as soon as there is room
    Object.assign(this, { width, height });
    // Plotly writes into what it is given: a zoom must not stay behind in the figure.
    const { data, layout } = JSON.parse(this.spec);
    const frame = JSON.stringify([layout, data.map((trace) => trace.colorbar)]);
    if (this.frame !== frame) this.renew();
    this.frame = frame;
    this.drawn = window.Plotly.react(this.div, data, { ...layout, width, height }, this.config);
  }

  // A picture that differs in more than its numbers gets a new place: in the old one Plotly would
  // keep the room that a colour bar took, and ranges that nobody asked for.
  renew() {
    const old = this.div;
    if (old.data === undefined) return; // nothing was drawn there
    this.observer.disconnect();
    this.div = old.cloneNode(false);
    this.div.classList.remove("js-plotly-plot");
    old.replaceWith(this.div);
    this.clear(old);
    this.observer.observe(this.div);
  }

  end() {
    clearTimeout(this.later);
    this.observer.disconnect();
    this.clear(this.div);
  }

  // Plotly has a last word to say when it has drawn, and needs what a purge takes away.
  clear(div) {
    Promise.resolve(this.drawn).finally(() => window.Plotly?.purge(div));
  }
}
