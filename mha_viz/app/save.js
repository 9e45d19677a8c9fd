// @ts-check
// PNG and SVG of a chart, made in the browser that drew it, without a server or any other host.

import { find, saveAs, setVariables } from "./browser/dom.js";
import { withOrigin } from "./browser/origin.js";
import { findFigure, plotly } from "./browser/plotly.js";

/** @import { Run } from "./browser/component.js" */

/**
 * What export_panel.py sends.
 * @typedef {object} Data
 * @property {string} key of the chart
 * @property {string} name of the file
 * @property {string} page colour behind the chart
 * @property {string} rim colour around the buttons
 * @property {string} origin where the numbers come from, as JSON
 */

/** @param {Run<Data>} run */
export default function ({ data, parentElement }) {
  const root = find(parentElement, ".save");
  setVariables(root, { rim: data.rim });
  const status = find(root, "span");
  for (const button of root.querySelectorAll("button")) {
    button.onclick = async () => {
      const found = await save(data, String(button.dataset.format));
      status.textContent = found ? "" : "This figure is no longer on the page.";
    };
  }
  return () => {};
}

/**
 * Whether the figure is on the page, and so was saved.
 * @param {Data} data
 * @param {string} format
 */
async function save({ key, name, page, origin }, format) {
  const className = key.trim().replace(/[^a-zA-Z0-9_-]/g, "-"); // as Streamlit writes it
  const figure = findFigure(`.st-key-${className} .js-plotly-plot`), library = plotly();
  if (!figure?.data || !library) return false;
  const { width, height } = figure.getBoundingClientRect();
  const layout = { ...figure.layout, paper_bgcolor: page, plot_bgcolor: page };
  const options = { format, width, height, scale: 2 };
  const address = await library.toImage({ data: figure.data, layout }, options);
  const file = await (await fetch(address)).blob();
  saveAs(await withOrigin(file, format, origin), `${name}.${format}`);
  return true;
}
