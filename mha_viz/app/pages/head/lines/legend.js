// @ts-check
// Several heads by name and colour. A click shows one head alone; a second click shows all again.

import { element } from "../../../browser/dom.js";

/**
 * @param {HTMLElement} legend
 * @param {{ name: string, colour: string }[]} heads
 * @param {number | null} alone the head that is shown alone
 * @param {(alone: number | null) => void} choose
 */
export function fillLegend(legend, heads, alone, choose) {
  const buttons = heads.map(({ name, colour }, i) => {
    const button = element("button", "", name);
    button.style.setProperty("--own", colour);
    button.title = alone === i ? "Show all heads again" : `Show only ${name}`;
    button.setAttribute("aria-pressed", String(alone === null || alone === i));
    button.onclick = () => {
      choose(alone === i ? null : i);
      /** @type {HTMLElement} */ (legend.children[i]).focus(); // these buttons have been replaced
    };
    return button;
  });
  legend.replaceChildren(...(heads.length > 1 ? buttons : []));
}
