// @ts-check
// Tokens on two sides, with lines that show what heads look at. The lines of the token under the
// pointer are highlighted at once, without the server. A pinned token goes to Python as one state,
// "pin".

import { schemeOf } from "../../../browser/colours.js";
import { component } from "../../../browser/component.js";
import { find, hostOf, saveAs, setVariables, themeVariable, withModifier } from "../../../browser/dom.js";
import { headKey, parseHead } from "../../../browser/head_name.js";
import { NextFrame } from "../../../browser/next_frame.js";
import { withOrigin } from "../../../browser/origin.js";
import { Outbox } from "../../../browser/outbox.js";
import { shorten } from "../../../browser/token_label.js";
import { HeadLines } from "./head_lines.js";
import { endAfterKey, sameEnd } from "./keys.js";
import { fillLegend } from "./legend.js";
import { Picture } from "./picture.js";
import { sentence } from "./sentence.js";

/** @import { Palettes } from "../../../browser/colours.js" */
/** @import { SetState } from "../../../browser/component.js" */
/** @import { End } from "./geometry.js" */
/** @import { Content } from "./picture.js" */

/**
 * What lines/__init__.py sends.
 * @typedef {object} Data
 * @property {string[]} tokens
 * @property {string} trace_key differs for every text and model
 * @property {{ name: string, lines: string, at_rest: number }[]} heads
 * @property {"vertical" | "horizontal"} direction
 * @property {End | null} pinned
 * @property {boolean} stage
 * @property {Palettes} palettes
 * @property {number} ack
 * @property {string} origin where the numbers come from, as JSON
 */

const LABEL_LENGTH = 12;

class Lines {
  /**
   * @param {HTMLElement | ShadowRoot} parent
   * @param {SetState} setState
   * @param {Data} data
   */
  constructor(parent, setState, data) {
    this.root = find(parent, ".lines");
    this.host = hostOf(parent);
    this.legend = find(parent, ".legend");
    this.stage = find(parent, ".stage");
    this.sentence = find(parent, ".sentence");
    this.outbox = new Outbox(setState, "pin");
    this.data = data;
    this.pinned = data.pinned;
    /** @type {End | null} what the pointer or the keyboard is on */
    this.pointed = null;
    /** @type {number | null} the head that is shown without the others */
    this.alone = null;
    this.heads = data.heads.map((head) => new HeadLines(head));
    this.labels = data.tokens;
    this.look = { palette: data.palettes.light, mono: "monospace", sans: "sans-serif" };
    this.picture = new Picture(this.stage, this.content());
    this.frame = new NextFrame(() => this.draw());
    this.resized = new ResizeObserver(() => {
      if (this.stage.clientWidth !== this.picture.geometry.width) this.frame.request();
    });
    this.resized.observe(this.stage);
    document.fonts?.ready.then(() => this.frame.request());
    this.listen(parent);
  }

  /** @param {ParentNode} parent */
  listen(parent) {
    const { stage } = this;
    stage.onpointermove = (event) => {
      if (event.pointerType !== "touch") this.point(this.endAt(event));
    };
    stage.onpointerleave = stage.onblur = () => this.point(null);
    stage.onclick = (event) => this.pin(this.endAt(event));
    stage.onkeydown = (event) => this.key(event);
    for (const button of find(parent, ".save").querySelectorAll("button")) {
      button.onclick = () => this.save(button.dataset.format === "svg" ? "svg" : "png");
    }
  }

  destroy() {
    this.resized.disconnect();
    this.frame.destroy();
  }

  /** @param {Data} data */
  update(data) {
    const sameText = this.data.trace_key === data.trace_key;
    this.data = data;
    if (this.outbox.upToDate(data.ack)) this.pinned = data.pinned;
    if (!sameText) this.pointed = null;
    this.heads = data.heads.map((head) => new HeadLines(head));
    this.labels = data.tokens.map((label) => shorten(label, LABEL_LENGTH));
    if (this.alone !== null && this.alone >= this.heads.length) this.alone = null;
    this.applyScheme(data);
    this.showHeads();
  }

  /** @param {Data} data */
  applyScheme({ palettes, stage }) {
    const variable = (/** @type {string} */ name) => themeVariable(this.host, name);
    const palette = palettes[schemeOf(variable("--st-background-color")) ?? "light"];
    this.look = {
      palette, mono: variable("--st-code-font") || "monospace", sans: variable("--st-font") || "sans-serif",
    };
    setVariables(this.root, palette);
    this.root.classList.toggle("large", stage);
  }

  // ---- what is shown ----

  /** The token whose lines are highlighted. */
  get highlighted() {
    return this.pointed ?? this.pinned;
  }

  showHeads() {
    const named = this.heads.map(({ name }, i) => ({ name, colour: this.colour(i) }));
    fillLegend(this.legend, named, this.alone, (alone) => {
      this.alone = alone;
      this.showHeads();
    });
    this.stage.setAttribute("aria-label",
      `${named.map(({ name }) => name).join(", ")}: lines between tokens. ` +
      "Arrow keys highlight another token or its other side; Enter pins the token.");
    this.draw();
  }

  /** @param {number} head */
  colour(head) {
    const { categorical } = this.look.palette;
    return categorical[head % categorical.length];
  }

  /** @returns {Content} */
  content() {
    const heads = this.heads.map((lines, index) => ({ lines, index, colour: this.colour(index) }));
    return {
      labels: this.labels, look: this.look, lanes: heads.length,
      heads: heads.filter(({ index }) => this.alone === null || this.alone === index),
      size: this.data.stage ? 18 : 14, vertical: this.data.direction === "vertical",
    };
  }

  draw() {
    this.picture.draw(this.content(), this.highlighted);
    this.say();
  }

  paint() {
    this.picture.highlight(this.highlighted);
    this.say();
  }

  say() {
    const { heads } = this.picture.content;
    this.sentence.replaceChildren(...sentence(this.highlighted, heads, this.labels));
  }

  // ---- pointer and keys ----

  /** @param {MouseEvent} event */
  endAt({ clientX, clientY }) {
    const { left, top } = this.stage.getBoundingClientRect();
    return this.picture.geometry.endAt(clientX - left, clientY - top);
  }

  /** @param {End | null} end null shows the pinned token again */
  point(end) {
    if (sameEnd(end, this.pointed)) return;
    this.pointed = end;
    this.paint();
  }

  /** @param {End | null} end if it is the pinned one, it is unpinned */
  pin(end) {
    if (!end) return;
    const again = sameEnd(this.pinned, end);
    this.pinned = again ? null : end;
    if (again) this.pointed = null;
    this.paint();
    this.outbox.send({ pinned: this.pinned, trace_key: this.data.trace_key });
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    if (withModifier(event)) return;
    const last = this.labels.length - 1;
    const here = this.highlighted ?? { at: last, side: "query" };
    const moved = endAfterKey(event.key, here, last, this.picture.content.vertical);
    if (moved) this.point(moved);
    else if (event.key === "Enter" || event.key === " ") this.pin(here);
    else if (event.key === "Escape") this.point(null);
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  /** @param {"svg" | "png"} format */
  async save(format) {
    const file = await this.picture[format](this.highlighted);
    const heads = this.heads.map(({ name }) => headKey(parseHead(name)));
    const name = `lines-${heads.join("-")}.${format}`;
    if (file) saveAs(await withOrigin(file, format, this.data.origin), name);
  }
}

export default component((parent, setState, /** @type {Data} */ data) => new Lines(parent, setState, data));
