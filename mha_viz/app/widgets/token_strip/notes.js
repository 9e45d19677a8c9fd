// @ts-check
// What heads_that_matter.py knows about the heads and the next token, once it is here: names and
// effects on the grid of heads, the name of the selected head, and the prediction after the text.

import { element } from "../../browser/dom.js";
import { headKey, parseHead } from "../../browser/head_name.js";
import { rectangle } from "../../browser/overlay.js";
import { deliver, receive } from "../../browser/parcel.js";
import { shorten, writeLabel } from "../../browser/token_label.js";
import { hideTooltip, showTooltip } from "../../browser/tooltip.js";
import { nameHead } from "./ahead.js";
import { LABEL_LENGTH } from "./chips.js";

/** @import { Head } from "../../browser/head_name.js" */
/** @import { Linked } from "../../browser/linked_figures.js" */
/** @import { Data as HeadNotes } from "../heads_that_matter.js" */
/** @import { TokenStrip } from "./token_strip.js" */

const NO_NAME = "no clear role"; // as in names.py
const LETTER = 5.2, PADDING = 10; // pixels of a name's letters, and beside them
const LEAST_NAMED = 38; // pixels of a thumbnail with a name

export class Notes {
  /** @param {TokenStrip} strip */
  constructor(strip) {
    this.strip = strip;
    /** @type {HeadNotes | null} */
    this.notes = null;
    /** @type {Head | null} the head that the page shows */
    this.named = null;
    this.ends = [
      receive("head notes", (notes) => {
        this.notes = notes;
        if (strip.built === null) return;
        if (this.named) this.name(this.named);
        strip.paint();
      }),
      receive("choose head", (head) => {
        if (head) strip.selectHead(parseHead(head));
      }),
    ];
  }

  /** The notes on this text and its pinned token; null while there are none. */
  get here() {
    const { notes, strip: { data, pinned } } = this;
    return notes?.trace_key === data.trace_key && notes.token === pinned ? notes : null;
  }

  /**
   * Names the head that the page shows, in all the lines that do.
   * @param {Head} head
   */
  name(head) {
    this.named = head;
    nameHead(head);
    const key = headKey(head), names = this.notes?.names;
    deliver("selected head", key);
    if (!names) return;
    for (const node of document.querySelectorAll(".head-name")) {
      if (node.textContent !== names[key][0]) node.textContent = names[key][0];
    }
  }

  /**
   * Writes names below the thumbnails, and effects into their empty triangles.
   * @param {Linked} grid
   */
  drawOn({ figure, overlay }) {
    const { palette, data: { room, stage }, head } = this.strip, names = this.notes?.names ?? {};
    /** @type {HTMLElement[]} */
    const nodes = [];
    const selected = headKey(head);
    if (room) {
      for (const [key, [name, short, evidence]] of Object.entries(names)) {
        const { layer, head: h } = parseHead(key);
        const top = layer - 0.5 + 1 / (1 + room);
        const box = rectangle(figure, [h - 0.5, h + 0.5, top, layer + 0.5], "");
        if (!box || parseFloat(box.style.width) < LEAST_NAMED) continue;
        const badge = element("button", "", fitting(name, short, parseFloat(box.style.width)));
        const mine = key === selected, none = name === NO_NAME;
        badge.title = evidence;
        badge.tabIndex = -1; // the help of the title line says the same
        badge.style.cssText = `pointer-events:auto;cursor:pointer;border:0;border-radius:9px;padding:0 5px;
          max-width:100%;overflow:hidden;white-space:nowrap;font:${stage ? 14 : 11}px/1.5 var(--st-font, "Source Sans"),sans-serif;
          background:${mine ? palette.query_fill : none ? "none" : palette.surface};
          color:${mine ? palette.query : none ? palette.muted : palette.ink}`;
        badge.onclick = (event) => {
          this.strip.selectHead({ layer, head: h });
          showTooltip(sentences(evidence), event, palette);
        };
        badge.onpointerleave = hideTooltip;
        box.style.cssText += ";display:flex;justify-content:center;align-items:center";
        box.append(badge);
        nodes.push(box);
      }
    }
    for (const [key, effect] of this.here?.heads ?? []) {
      const { layer, head: h } = parseHead(key);
      const box = rectangle(figure, [h - 0.5, h + 0.5, layer - 0.5, layer + 0.5], "");
      if (!box) continue;
      const small = parseFloat(box.style.width) < 60;
      box.style.cssText += `;text-align:right;padding:${small ? "2px 3px" : "6px 7px"};color:${palette.ink};
        font:650 ${small ? 10 : stage ? 16 : 13}px/1 var(--st-font, "Source Sans"),sans-serif`;
      box.textContent = `+${effect.toFixed(1)}`;
      nodes.push(box);
    }
    overlay.append(...nodes);
  }

  /**
   * What the model expects after the text, if its last token is shown and pinned: the end of the
   * sentence, with room for it beforehand. Also writes it into the chip after that token.
   * @returns {HTMLElement[]}
   */
  expects() {
    const { chips: { next }, pinned, query, labels } = this.strip, { here } = this;
    const last = pinned === labels.length - 1;
    next.style.visibility = last && here ? "visible" : "hidden";
    if (!last || query !== pinned) return [];
    const part = element("span", "part expects");
    if (!here) return [part];
    const [[label, p]] = here.expects, word = element("span", "word");
    writeLabel(word, shorten(label, LABEL_LENGTH));
    next.replaceChildren(word, element("span", "number", percent(p)));
    next.title = "the most likely next token";
    part.append(element("b", "", "The model expects "), ...here.expects.map(chance));
    return [part];
  }

  destroy() {
    for (const end of this.ends) end();
  }
}

/** @param {[label: string, probability: number]} expected */
function chance([label, p]) {
  const pair = element("span", "pair"), token = element("span", "token");
  writeLabel(token, shorten(label, LABEL_LENGTH));
  pair.append(token, ` ${percent(p)}`);
  return pair;
}

/** @param {number} p */
function percent(p) {
  return p < 0.01 ? "<1%" : `${Math.round(100 * p)}%`;
}

/**
 * As much of a name as a thumbnail of that width has room for.
 * @param {string} name
 * @param {string} short
 * @param {number} width
 */
function fitting(name, short, width) {
  const [first] = name.split(" · ");
  return [name, first].find((text) => text.length * LETTER + PADDING <= width) ?? short;
}

/** @param {string} text @returns {string[][]} */
function sentences(text) {
  return text.split(/(?<=[.:,]) (?!\d)/).map((line) => [line]);
}
