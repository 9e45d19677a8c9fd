// PNG and SVG of a chart, made where it is drawn: no server and no other host takes part.

export default function ({ data, parentElement }) {
  const root = parentElement.querySelector(".save");
  root.style.setProperty("--rim", data.rim);
  const status = root.querySelector("span");
  for (const button of root.querySelectorAll("button")) {
    button.onclick = async () => {
      const name = data.key.trim().replace(/[^a-zA-Z0-9_-]/g, "-"); // as Streamlit writes it
      const plot = document.querySelector(`.st-key-${name} .js-plotly-plot`);
      if (!plot || !window.Plotly?.downloadImage) {
        status.textContent = "This figure is not on the page now.";
        return;
      }
      status.textContent = "";
      const { width, height } = plot.getBoundingClientRect();
      const layout = { ...plot.layout, paper_bgcolor: data.page, plot_bgcolor: data.page };
      await window.Plotly.downloadImage(
        { data: plot.data, layout },
        { format: button.dataset.format, filename: data.name, width, height, scale: 2 },
      );
    };
  }
  return () => {};
}
