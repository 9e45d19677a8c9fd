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
    window.Plotly.react(this.div, data, { ...layout, width, height }, this.config);
  }

  end() {
    clearTimeout(this.later);
    this.observer.disconnect();
    window.Plotly?.purge(this.div);
  }
}
