// @ts-check
// The text as a strip of chips, one for each token, coloured by the weights of one query.

import { colourAt, scalePosition } from "../../browser/colours.js";
import { element } from "../../browser/dom.js";
import { shorten, writeLabel } from "../../browser/token_label.js";
import { MIN_SHOWN, weightText } from "./pattern.js";

/** @import { Palette, Scale } from "../../browser/colours.js" */
/** @import { Pattern } from "./pattern.js" */

/**
 * A token as Python describes it. A character may take several tokens; `first` and `end` are the
 * range of positions of the character that this token belongs to.
 * @typedef {[label: string, kind: string, note: string, first: number, end: number]} Token
 */

export const LABEL_LENGTH = 16;
const ONE_LINE = 20; // a strip of fewer tokens never scrolls

export class Chips {
  /** @param {HTMLElement} strip */
  constructor(strip) {
    this.strip = strip;
    /** @type {HTMLElement[]} */
    this.chips = [];
    this.next = element("div", "next"); // what the model expects after the text
  }

  /**
   * @param {(position: number | null) => void} preview called with the position under the pointer
   *   or with the keyboard's focus, and with null when it leaves
   * @param {(position: number | null) => void} pin called with the position that is clicked
   */
  listen(preview, pin) {
    const position = (/** @type {Event} */ { target }) => this.positionOf(target);
    this.strip.onpointerover = (event) => preview(position(event));
    this.strip.onpointerleave = () => preview(null);
    this.strip.onclick = (event) => pin(position(event));
    this.strip.addEventListener("focusin", (event) => preview(position(event)));
    this.strip.addEventListener("focusout", () => preview(null));
  }

  /** @param {Token[]} tokens */
  build(tokens) {
    this.chips = tokens.map(makeChip);
    this.strip.replaceChildren(...this.chips, this.next);
  }

  /**
   * The position of the token that an element belongs to; null outside of the chips.
   * @param {EventTarget | null} node
   */
  positionOf(node) {
    const chip = node instanceof Element ? node.closest(".chip") : null;
    return chip instanceof HTMLElement ? Number(chip.dataset.position) : null;
  }

  /** @param {number} position */
  focus(position) {
    this.chips[position].focus();
  }

  /**
   * Shows what the query looks at by colour, and what looks at it by a bar below the token.
   * @param {number} query
   * @param {Pattern} pattern
   * @param {Palette} palette
   * @param {Scale} scale
   */
  paint(query, pattern, palette, scale) {
    this.chips.forEach((chip, i) => {
      const weight = i <= query ? pattern.weight(query, i) : pattern.weight(i, query);
      const shown = weight >= MIN_SHOWN;
      const filled = i < query && shown;
      const place = scalePosition(weight, scale, query);
      const selected = i === query;
      chip.classList.toggle("query", selected);
      chip.setAttribute("aria-selected", String(selected));
      chip.tabIndex = selected ? 0 : -1;
      chip.style.background = filled ? colourAt(palette.sequential, place) : "";
      chip.style.color = filled && place >= palette.ink_flips_at ? palette.ink_on_strong : "";
      const [, number, bar] = /** @type {HTMLCollectionOf<HTMLElement>} */ (chip.children);
      number.textContent = shown ? weightText(weight).replace(/^0/, "") : "";
      bar.style.height = i > query && shown ? `${Math.max(2, 7 * Math.sqrt(weight))}px` : "0";
    });
  }

  /**
   * Scrolls the strip, not the page, until a token is well in view.
   * @param {number} position
   */
  scrollTo(position) {
    const { strip } = this, chip = this.chips[position];
    if (!chip || this.chips.length < ONE_LINE || strip.scrollHeight <= strip.clientHeight) return;
    const top = chip.offsetTop - strip.clientHeight / 2;
    if (Math.abs(strip.scrollTop - top) > strip.clientHeight / 2) strip.scrollTop = top;
  }
}

/** @param {Token} token @param {number} position */
function makeChip([label, kind, note, first, end], position) {
  const chip = element("div", `chip ${kind}`);
  const parts = end > first;
  chip.classList.toggle("joined", parts && position > first);
  chip.classList.toggle("joins", parts && position < end - 1);
  chip.setAttribute("role", "option");
  chip.dataset.position = String(position);
  chip.tabIndex = -1;
  chip.title = `${label}  position ${position}${note ? `\n${note}` : ""}`;
  const word = element("span", "word");
  writeLabel(word, shorten(label, LABEL_LENGTH));
  chip.append(word, element("span", "number"), element("span", "bar"));
  return chip;
}
