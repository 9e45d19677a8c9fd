// @ts-check
// The band of steps, the scrubber, the buttons, and the choice of a token and of heads.

import { element, find } from "../../../browser/dom.js";
import { Marks, svg } from "./marks.js";
import { FRAMES, LAST } from "./motion.js";

/** @import { Mark } from "./marks.js" */
/** @import { Transport } from "./transport.js" */

/**
 * @typedef {object} Step
 * @property {string} name
 * @property {string} shape with axis letters
 * @property {string} sizes the same with numbers
 * @property {{ width: number, height: number, items: Mark[] }} miniature
 */
/**
 * @typedef {object} Choice
 * @property {string[]} tokens
 * @property {number} token
 * @property {{ name: string, colour: string }[]} heads
 * @property {number} head
 * @property {number | null} other
 */
/**
 * @typedef {object} Actions
 * @property {(act: (transport: Transport) => void) => void} drive
 * @property {(choice: object) => void} choose
 */

export class Controls {
  /** @param {ParentNode} parent @param {Transport} transport @param {Actions} actions */
  constructor(parent, transport, actions) {
    this.transport = transport;
    this.actions = actions;
    const button = (/** @type {string} */ name) => /** @type {HTMLButtonElement} */ (find(parent, `.${name}`));
    this.back = button("previous");
    this.play = button("play");
    this.ahead = button("next");
    this.band = find(parent, ".band");
    this.bar = find(parent, ".bar");
    this.count = find(parent, ".count");
    this.chooser = find(parent, ".chooser");
    this.scrub = /** @type {HTMLInputElement} */ (find(parent, ".scrub"));
    this.back.onclick = () => actions.drive((t) => t.previous());
    this.play.onclick = () => actions.drive((t) => t.toggle());
    this.ahead.onclick = () => actions.drive((t) => t.next());
    this.scrub.oninput = () => actions.drive((t) => t.seek(Number(this.scrub.value)));
    /** @type {Step[]} */
    this.steps = [];
  }

  /** @param {Step[]} steps */
  build(steps) {
    if (JSON.stringify(steps) === JSON.stringify(this.steps)) return;
    this.steps = steps;
    this.scrub.max = String(steps.length * FRAMES - 1);
    this.band.replaceChildren(...steps.map((step, number) => {
      const button = element("button", "station");
      button.append(drawing(step.miniature), element("b", "", step.name), element("span", "mono", step.shape));
      button.title = `${step.name} ${step.sizes}`;
      button.onclick = () => this.actions.drive((t) => t.show(number));
      button.style.flexGrow = String(Math.max(step.miniature.width, 60));
      return button;
    }));
    this.bar.replaceChildren(...steps.map(() => element("i")));
  }

  /** @param {string[]} shown names of the steps whose result is seen */
  show(shown) {
    const { step, frame, playing, n, still } = this.transport;
    const lit = this.steps.map(({ name }) => shown.includes(name));
    [...this.band.children].forEach((station, i) => {
      station.classList.toggle("lit", lit[i]);
      station.classList.toggle("at", i === step);
      if (i === step) station.setAttribute("aria-current", "step");
      else station.removeAttribute("aria-current");
    });
    [...this.bar.children].forEach((part, i) => part.classList.toggle("lit", lit[i] || i === step));
    this.scrub.min = still ? String(LAST) : "0";
    this.scrub.step = still ? String(FRAMES) : "1";
    this.scrub.value = String(this.transport.place);
    this.scrub.style.setProperty("--done", `${(100 * this.transport.place) / (n * FRAMES - 1)}%`);
    this.scrub.setAttribute("aria-valuetext", `${this.steps[step]?.name}, frame ${frame + 1} of ${FRAMES}`);
    const first = lit.indexOf(true) + 1, last = lit.lastIndexOf(true) + 1;
    this.count.textContent = `${first && first < last ? `${first}–${last}` : step + 1} of ${n}`;
    this.label(this.back, "Previous step", step > 0 ? `‹ ${this.steps[step - 1]?.name}` : "‹", step === 0);
    const ended = step === n - 1 && frame >= LAST;
    const ahead = frame < LAST ? this.steps[step] : this.steps[step + 1];
    this.label(this.ahead, frame < LAST ? "To the end of this step" : "Next step", `${ahead?.name ?? ""} ›`, ended);
    this.label(this.play, playing ? "Pause" : "Play", playing ? "pause" : "play", false);
    this.play.classList.toggle("playing", playing !== "");
  }

  /** @param {HTMLButtonElement} button @param {string} name @param {string} text @param {boolean} off */
  label(button, name, text, off) {
    button.setAttribute("aria-label", name);
    button.title = name;
    find(button, ".text").textContent = text;
    button.disabled = off;
  }

  /** @param {Choice} choice */
  choose({ tokens, token, heads, head, other }) {
    const step = (/** @type {number} */ by, /** @type {string} */ text, /** @type {string} */ name) => {
      const button = element("button", "turn", text), to = token + by;
      button.setAttribute("aria-label", name);
      button.disabled = to < 0 || to >= tokens.length;
      button.onclick = () => this.actions.choose({ token: to });
      return button;
    };
    const chosen = element("span", "token");
    chosen.append(step(-1, "‹", "Previous token"), element("span", "mono", tokens[token]), step(1, "›", "Next token"));
    this.chooser.classList.toggle("many", heads.length > 6);
    this.chooser.replaceChildren(chosen, ...heads.map(({ name, colour }, i) => {
      const button = element("button", "head", name), full = i === head || i === other;
      button.style.setProperty("--head", colour);
      button.classList.toggle("full", full);
      button.classList.toggle("at", i === head);
      button.setAttribute("aria-pressed", String(full));
      button.title = i === head ? `Head ${name}, followed` : `Follow head ${name}`;
      button.onclick = () => this.actions.choose({ head: i });
      return button;
    }));
  }
}

/** @param {Step["miniature"]} miniature */
function drawing({ width, height, items }) {
  const picture = svg("svg", { width, height, viewBox: `0 0 ${width} ${height}`, "aria-hidden": "true" });
  new Marks(picture, items).show(LAST);
  return picture;
}
