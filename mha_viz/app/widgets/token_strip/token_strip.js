// @ts-check
// The text as a strip of tokens, linked to the grid of heads and the heatmap. A hover shows at once,
// without the server. The selection (a head, a token, a window of the heatmap) goes to Python as one
// state, "focus".

import { schemeOf } from "../../browser/colours.js";
import { component } from "../../browser/component.js";
import { element, find, hostOf, setVariables, themeVariable } from "../../browser/dom.js";
import { headKey, parseHead } from "../../browser/head_name.js";
import { Outbox } from "../../browser/outbox.js";
import { Ahead } from "./ahead.js";
import { Chips } from "./chips.js";
import { Figures } from "./figures.js";
import { onKey } from "./keys.js";
import { Notes } from "./notes.js";
import { Pattern } from "./pattern.js";
import { sentence } from "./sentence.js";
import { keepTextWellFormed } from "./well_formed.js";
import { Wheel } from "./wheel.js";
import { sameWindow } from "./zoom.js";

/** @import { Palettes, Scale } from "../../browser/colours.js" */
/** @import { SetState } from "../../browser/component.js" */
/** @import { Head } from "../../browser/head_name.js" */
/** @import { Token } from "./chips.js" */
/** @import { Window } from "./zoom.js" */

/**
 * What token_strip.py sends.
 * @typedef {object} Data
 * @property {Token[]} tokens
 * @property {string} trace_key differs for every text and model
 * @property {string} pattern
 * @property {number} n_layers
 * @property {number} n_heads
 * @property {string} at the selected head
 * @property {number} token the pinned position
 * @property {Window | null} window
 * @property {number} room below each thumbnail, as a share of its side
 * @property {number} block tokens per side of a cell of the heatmap
 * @property {Scale} scale
 * @property {boolean} stage
 * @property {"light" | "dark"} theme the scheme that Python draws in
 * @property {Palettes} palettes
 * @property {Record<string, string>} legend meanings of the marks in the text
 * @property {number} ack
 */

// Milliseconds between two choices that are sent while a key is held down. Of heads that the browser
// shows by itself, Python hears once the key rests for as long.
const PACE = 80;

export class TokenStrip {
  /**
   * @param {HTMLElement | ShadowRoot} parent
   * @param {SetState} setState
   * @param {Data} data
   */
  constructor(parent, setState, data) {
    this.root = find(parent, ".token-strip");
    this.host = hostOf(parent);
    this.sentence = find(parent, ".sentence");
    this.legend = find(parent, ".legend");
    this.chips = new Chips(find(parent, ".strip"));
    this.outbox = new Outbox(setState, "focus", PACE);

    this.data = data;
    this.head = parseHead(data.at);
    this.pinned = data.token;
    this.window = data.window;
    this.palette = data.palettes.light;
    this.pattern = new Pattern([], 0);
    this.ahead = new Ahead(this);
    /** @type {string[]} */
    this.labels = [];
    /** @type {number | null} the position that the strip was scrolled to */
    this.scrolledTo = null;
    /** @type {string | null} the trace whose tokens the chips show */
    this.built = null;
    /** @type {string | null} the scheme that Python was asked to draw in */
    this.asked = null;
    /** @type {number | null} the position under the pointer or with the keyboard's focus */
    this.hovered = null;

    this.figures = new Figures(this);
    this.notes = new Notes(this);
    this.onKey = (/** @type {KeyboardEvent} */ event) => onKey(this, event);
    window.addEventListener("keydown", this.onKey);
    this.wheel = new Wheel(this);
    this.chips.listen((position) => this.preview(position), (position) => this.pin(position));
    keepTextWellFormed();
  }

  destroy() {
    window.removeEventListener("keydown", this.onKey);
    this.wheel.destroy();
    this.ahead.destroy();
    this.notes.destroy();
    this.figures.destroy();
    this.outbox.destroy();
  }

  /** @param {Data} data */
  update(data) {
    this.data = data;
    this.labels = data.tokens.map(([label]) => label);
    if (this.outbox.upToDate(data.ack)) {
      this.root.classList.remove("sending");
      this.head = parseHead(data.at);
      this.pinned = data.token;
      this.window = data.window;
      this.ahead.settle(data.at);
    }
    this.applyScheme(data);
    const ahead = data.at !== headKey(this.head) && this.ahead.show();
    if (!ahead) this.pattern = Pattern.exact(data.pattern, data.tokens.length);
    this.notes.name(ahead ? this.head : parseHead(data.at));
    if (this.built !== data.trace_key) this.build(data);
    this.hovered = null;
    this.figures.follow();
    this.paint();
  }

  // The browser knows the scheme first. If Python drew the figures in the other one, a message asks it
  // to draw them again.
  /** @param {Data} data */
  applyScheme({ palettes, stage, theme }) {
    const scheme = schemeOf(themeVariable(this.host, "--st-background-color"));
    this.palette = palettes[scheme ?? "light"];
    setVariables(this.root, this.palette);
    this.root.classList.toggle("stage", stage);
    if ((scheme ?? "light") === theme) {
      this.asked = null;
    } else if (scheme && scheme !== this.asked) {
      this.asked = scheme;
      this.send();
    }
  }

  /** @param {Data} data */
  build({ trace_key, tokens, legend }) {
    this.built = trace_key;
    this.scrolledTo = null;
    this.chips.build(tokens);
    this.legend.replaceChildren();
    for (const [mark, meaning] of Object.entries(legend)) {
      this.legend.append(element("b", "", mark), ` ${meaning}   `);
    }
  }

  // ---- what is shown ----

  /** The position that the strip and the figures show. */
  get query() {
    return Math.min(this.hovered ?? this.pinned, this.labels.length - 1);
  }

  paint() {
    const { query, pattern, palette, labels } = this;
    this.chips.paint(query, pattern, palette, this.data.scale);
    if (this.hovered === null && query !== this.scrolledTo) {
      this.scrolledTo = query;
      this.chips.scrollTo(query); // which makes the browser lay out the page
    }
    this.sentence.replaceChildren(...sentence(query, pattern, labels, palette), ...this.notes.expects());
    this.figures.marks.request();
  }

  // ---- what is selected ----

  /** @param {number | null} position null shows the pinned token again */
  preview(position) {
    if (position === this.hovered) return;
    this.hovered = position;
    this.paint();
  }

  /** @param {number | null} position */
  pin(position) {
    if (position === null || position === this.pinned) return;
    this.pinned = position;
    this.paint();
    this.send();
  }

  /** @param {Head} head nothing happens where the model has no such head */
  selectHead(head) {
    const { n_layers, n_heads } = this.data;
    if (head.layer < 0 || head.head < 0 || head.layer >= n_layers || head.head >= n_heads) return;
    this.head = head;
    const shown = this.ahead.show();
    if (shown) this.notes.name(head);
    this.paint();
    this.send(shown ? PACE : 0);
  }

  /** @param {Window | null} window null shows the whole pattern */
  zoom(window) {
    if (sameWindow(window, this.window)) return;
    this.window = window;
    this.send();
  }

  /** @param {number} [rest] */
  send(rest = 0) {
    this.root.classList.add("sending"); // until Python has answered: tests wait for that
    this.outbox.send({
      at: headKey(this.head), token: this.pinned, window: this.window, theme: this.asked,
      trace_key: this.data.trace_key,
    }, rest);
  }
}

export default component(
  (parent, setState, /** @type {Data} */ data) => new TokenStrip(parent, setState, data),
);
