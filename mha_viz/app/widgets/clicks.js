// @ts-check
// Every click on a chart is heard. Plotly takes the point of a click from when it last looked what is
// under the pointer. It looks at most once in 50 ms, and while the button is down it finds nothing:
// a quick click just after a movement would be lost, or hit the cell that the pointer came from.

import { isFirstCall } from "../browser/once.js";
import { plotly } from "../browser/plotly.js";

/** @import { Figure } from "../browser/plotly.js" */

/** Makes Plotly look again when the button goes up, once however often it is called. */
export default function hearEveryClick() {
  if (!isFirstCall("hear every click")) return;
  /** @type {Figure | null} */
  let pressed = null;
  const press = (/** @type {Event} */ event) => {
    const target = /** @type {Element} */ (event.composedPath()[0]);
    pressed = target.closest?.(".js-plotly-plot") ?? null;
  };
  const release = () => {
    if (pressed?._fullLayout) plotly()?.Fx.unhover(pressed); // which also ends its 50 ms
    pressed = null;
  };
  for (const kind of ["mousedown", "touchstart"]) window.addEventListener(kind, press, true);
  for (const kind of ["mouseup", "touchend"]) window.addEventListener(kind, release, true);
}
