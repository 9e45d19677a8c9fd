// @ts-check
// A board of all heads that ablates and restores them. The ablated heads go to Python as one state,
// "choice".

import { component } from "../browser/component.js";
import { element, find, setVariables, withModifier } from "../browser/dom.js";
import { headKey, headLabel, neighbour, parseHead } from "../browser/head_name.js";
import { Outbox } from "../browser/outbox.js";

/** @import { SetState } from "../browser/component.js" */
/** @import { Head } from "../browser/head_name.js" */

/**
 * What head_board.py sends; heads are written as in links.
 * @typedef {object} Data
 * @property {number} n_layers
 * @property {number} n_heads
 * @property {string[]} ablated
 * @property {string[]} pruned
 * @property {string} selected
 * @property {string} image thumbnails of all heads in one picture, "" where there are none
 * @property {Record<string, { colour: string, text: string }> | null} values
 * @property {boolean} stage
 * @property {Record<string, string>} colours
 * @property {number} ack
 */

class HeadBoard {
  /** @param {HTMLElement | ShadowRoot} parent @param {SetState} setState @param {Data} data */
  constructor(parent, setState, data) {
    this.root = find(parent, ".board");
    this.outbox = new Outbox(setState, "choice");
    this.data = data;
    this.ablated = new Set(data.ablated);
    this.built = "";
    /** @type {Map<string, HTMLButtonElement>} cells by the key of their head */
    this.cells = new Map();
    this.root.onkeydown = (event) => this.key(event);
  }

  destroy() {
    this.outbox.destroy();
  }

  /** @param {Data} data */
  update(data) {
    this.data = data;
    if (this.outbox.upToDate(data.ack)) this.ablated = new Set(data.ablated);
    setVariables(this.root, data.colours);
    this.root.classList.toggle("stage", data.stage);
    const size = `${data.n_layers} × ${data.n_heads}`;
    if (size !== this.built) this.build(data);
    this.built = size;
    this.paint();
  }

  // ---- what is shown ----

  /** @param {Data} data */
  build({ n_layers, n_heads }) {
    setVariables(this.root, { heads: `${n_heads}`, image_size: `${n_heads * 100}% ${n_layers * 100}%` });
    this.cells.clear();
    const heads = [...Array(n_heads).keys()], layers = [...Array(n_layers).keys()];
    this.root.replaceChildren(
      this.group("all", "all", "Ablate all heads, or restore all", () => true),
      ...heads.map((h) => this.group(
        `H${h}`, `column ${h}`, `Ablate or restore head ${h} of every layer`, ({ head }) => head === h,
      )),
      ...layers.flatMap((l) => [
        this.group(
          `L${l}`, `row ${l}`, `Ablate or restore every head of layer ${l}`, ({ layer }) => layer === l,
        ),
        ...heads.map((h) => this.cell({ layer: l, head: h })),
      ]),
    );
  }

  /**
   * A button for a group of heads.
   * @param {string} text
   * @param {string} name
   * @param {string} title
   * @param {(head: Head) => boolean} belongs
   */
  group(text, name, title, belongs) {
    const label = element("button", "label", text);
    label.dataset.group = name;
    label.title = title;
    label.setAttribute("aria-label", title);
    label.onclick = () => this.toggle([...this.cells.keys()].filter((key) => belongs(parseHead(key))));
    return label;
  }

  /** @param {Head} head */
  cell(head) {
    const { n_layers, n_heads } = this.data, key = headKey(head);
    const cell = element("button", "cell");
    cell.dataset.head = key;
    cell.tabIndex = head.layer || head.head ? -1 : 0;
    cell.style.backgroundPosition = `${percent(head.head, n_heads)} ${percent(head.layer, n_layers)}`;
    cell.onclick = () => {
      this.toggle([key]);
      this.focus(key);
    };
    this.cells.set(key, cell);
    return cell;
  }

  paint() {
    const { image, values, selected } = this.data;
    this.root.style.setProperty("--image", `url(${image})`); // once, not once for each cell
    const pruned = new Set(this.data.pruned);
    for (const [key, cell] of this.cells) {
      const ablated = this.ablated.has(key), value = values?.[key];
      cell.classList.toggle("ablated", ablated);
      cell.classList.toggle("pruned", pruned.has(key));
      cell.classList.toggle("selected", key === selected);
      cell.disabled = pruned.has(key);
      cell.style.backgroundImage = value ? "none" : "";
      cell.style.backgroundColor = value?.colour ?? "";
      cell.setAttribute("aria-pressed", String(!ablated));
      const state = pruned.has(key) ? "pruned" : ablated ? "ablated" : "active";
      cell.title = `${headLabel(parseHead(key))}, ${state}${value ? `: ${value.text}` : ""}`;
      cell.setAttribute("aria-label", cell.title);
    }
  }

  // ---- clicks and keys ----

  /**
   * Ablates heads; where all of them are ablated already, restores them.
   * @param {string[]} keys
   */
  toggle(keys) {
    const heads = keys.filter((key) => !this.cells.get(key)?.disabled);
    const restore = heads.every((key) => this.ablated.has(key));
    for (const key of heads) {
      if (restore) this.ablated.delete(key);
      else this.ablated.add(key);
    }
    this.paint();
    this.outbox.send({ ablated: [...this.cells.keys()].filter((key) => this.ablated.has(key)) });
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    const from = event.target instanceof HTMLElement ? event.target.dataset.head : undefined;
    if (!from || withModifier(event)) return;
    const to = neighbour(parseHead(from), event.key);
    if (!to) return;
    if (this.cells.has(headKey(to))) this.focus(headKey(to));
    event.preventDefault();
    event.stopPropagation();
  }

  /** @param {string} key */
  focus(key) {
    for (const [each, cell] of this.cells) cell.tabIndex = each === key ? 0 : -1;
    this.cells.get(key)?.focus();
  }
}

/** @param {number} index @param {number} count */
function percent(index, count) {
  return `${count > 1 ? (100 * index) / (count - 1) : 0}%`;
}

export default component((parent, setState, /** @type {Data} */ data) => new HeadBoard(parent, setState, data));
