// @ts-check
// No click on a chart is lost. For a click, Plotly reports the point that it last found under
// the pointer. It looks at most once every 50 ms, and never finds one while the button is down: a
// quick click just after a movement would be lost, or hit the cell that the pointer came from.

import { isFirstCall } from "../browser/once.js";
import { plotly } from "../browser/plotly.js";

/** @import { Figure } from "../browser/plotly.js" */

/** @param {Figure} figure */
const selects = (figure) => String(figure._fullLayout?.clickmode).includes("select");

/**
 * Makes Plotly look again when the button goes up; further calls do nothing. A figure that selects
 * points on a click needs the point earlier: there, Plotly looks when the button goes down.
 */
export default function catchEveryClick() {
  if (!isFirstCall("catch every click")) return;
  /** @type {Figure | null} */
  let pressed = null;
  const press = (/** @type {Event} */ event) => {
    const target = /** @type {Element} */ (event.composedPath()[0]);
    pressed = target.closest?.(".js-plotly-plot") ?? null;
    if (pressed?._fullLayout && selects(pressed) && event.type === "mousedown") {
      plotly()?.Fx.unhover(pressed);
      plotly()?.Fx.hover(pressed, event, "xy");
    }
  };
  const release = () => {
    if (pressed?._fullLayout && !selects(pressed)) {
      plotly()?.Fx.unhover(pressed); // which also ends the wait of 50 ms
    }
    pressed = null;
  };
  for (const kind of ["mousedown", "touchstart"]) window.addEventListener(kind, press, true);
  for (const kind of ["mouseup", "touchend"]) window.addEventListener(kind, release, true);
}
