// @ts-check
// The heads that write most towards the next token, as bars; a click on one selects the head.

import { component } from "../browser/component.js";
import { element, find } from "../browser/dom.js";
import { headLabel, parseHead } from "../browser/head_name.js";
import { deliver, receive } from "../browser/parcel.js";
import { writeLabel } from "../browser/token_label.js";

/**
 * What heads_that_matter.py sends; heads are written as in links.
 * @typedef {object} Data
 * @property {string} trace_key
 * @property {number} token the position whose next token is predicted
 * @property {[label: string, probability: number][]} expects
 * @property {[head: string, effect: number][]} heads the largest effect first
 * @property {number} sum the effects of all heads
 * @property {number} score
 * @property {number} n_heads
 * @property {Record<string, [name: string, short: string, evidence: string]> | null} names
 */

class HeadsThatMatter {
  /** @param {HTMLElement | ShadowRoot} parent */
  constructor(parent) {
    this.root = find(parent, ".matter");
    this.selected = "";
    this.end = receive("selected head", (head) => {
      this.selected = head;
      this.mark();
    });
  }

  /** @param {Data} data */
  update(data) {
    deliver("head notes", data);
    const top = data.heads.length ? data.heads[0][1] : 1;
    const title = element("div", "title");
    const token = element("span", "token"), [[label, p]] = data.expects;
    writeLabel(token, label);
    title.append(
      element("b", "", "Heads that matter here"), " what each adds to the score of ", token,
      ` (${Math.round(100 * p)}%)`,
    );
    const bars = data.heads.map(([head, effect]) => row(head, effect, top, data.names?.[head][0] ?? ""));
    const rest = `all ${data.n_heads} heads ${signed(data.sum)}, the whole score ${data.score.toFixed(1)}`;
    const rows = element("div", "rows");
    rows.append(...bars, element("div", "rest", rest));
    this.root.replaceChildren(title, rows);
    this.mark();
  }

  mark() {
    for (const node of this.root.querySelectorAll("button")) {
      node.setAttribute("aria-pressed", String(node.dataset.head === this.selected));
    }
  }

  destroy() {
    this.end();
    deliver("head notes", null);
  }
}

/** @param {string} head @param {number} effect @param {number} top @param {string} name */
function row(head, effect, top, name) {
  const button = element("button", "row"), bar = element("i");
  button.dataset.head = head;
  button.onclick = () => {
    deliver("choose head", head);
    deliver("choose head", null); // a strip that is made later must not hear of it
  };
  bar.style.width = `${(100 * effect) / top}%`;
  const track = element("span", "track");
  track.append(bar);
  button.append(
    element("b", "", headLabel(parseHead(head))), element("span", "name", name), track,
    element("span", "effect", signed(effect)),
  );
  return button;
}

/** @param {number} value */
export function signed(value) {
  return `${value < 0 ? "−" : "+"}${Math.abs(value).toFixed(1)}`;
}

export default component((parent) => new HeadsThatMatter(parent));
