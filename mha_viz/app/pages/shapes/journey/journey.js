// @ts-check
// The journey through a layer: a band of steps, and the selected one large, moving from step to
// step. All scenes are here, so that playing needs no server; the step and what is followed go to
// Python as one state, "choice".

import { component } from "../../../browser/component.js";
import { find, setVariables, withModifier } from "../../../browser/dom.js";
import { Outbox } from "../../../browser/outbox.js";
import { receive } from "../../../browser/parcel.js";
import { Controls } from "./controls.js";
import { FRAMES, LAST } from "./motion.js";
import { Stage } from "./stage.js";
import { Transport } from "./transport.js";

/** @import { SetState } from "../../../browser/component.js" */
/** @import { Choice, Step } from "./controls.js" */
/** @import { Scene } from "./stage.js" */

/**
 * What journey/__init__.py sends.
 * @typedef {object} Data
 * @property {Step[]} steps
 * @property {{ width: number, scenes: Scene[] }} wide
 * @property {{ width: number, scenes: Scene[] }} narrow
 * @property {Record<string, string>} images as data URIs
 * @property {Choice} choice
 * @property {string} scale what a pixel of the miniatures stands for
 * @property {boolean} stage
 * @property {Record<string, string>} colours
 */

const NARROW = 760; // pixels: below, pictures lie one under another
const TICK = 1000 / FRAMES; // milliseconds
const SWIPE = 50; // pixels

class Journey {
  /** @param {HTMLElement | ShadowRoot} parent @param {SetState} setState @param {Data} data */
  constructor(parent, setState, data) {
    this.root = find(parent, ".journey");
    this.data = data;
    this.outbox = new Outbox(setState, "choice");
    this.transport = new Transport(data.steps.length);
    this.stage = new Stage(parent);
    this.controls = new Controls(parent, this.transport, {
      drive: (act) => this.drive(act),
      choose: (choice) => this.outbox.send({ step: this.transport.step, ...choice }),
    });
    this.words = ["name", "question", "scale", "said"].map((name) => find(parent, `.${name}`));
    this.stepSent = -1;
    this.spoken = -1;
    this.newest = 0;
    this.ready = false;
    this.printing = false;
    /** @type {ReturnType<typeof setInterval> | undefined} */
    this.clock = undefined;
    this.listen();
  }

  listen() {
    const still = matchMedia("(prefers-reduced-motion: reduce)"), ends = new AbortController();
    const until = { signal: ends.signal };
    const settle = () => this.drive((transport) => {
      transport.still = still.matches;
      if (still.matches) transport.show(transport.step);
    });
    this.transport.still = still.matches;
    still.addEventListener("change", settle, until);
    document.addEventListener("keydown", (event) => this.key(event), until);
    for (const [event, prints] of /** @type {const} */ ([["beforeprint", true], ["afterprint", false]])) {
      window.addEventListener(event, () => {
        this.printing = prints;
        this.drive((transport) => transport.show(transport.step));
      }, until);
    }
    this.stage.place.addEventListener("click", (event) => this.click(event), until);
    let x = 0, y = 0;
    this.stage.place.addEventListener("touchstart", ({ touches: [touch] }) => {
      [x, y] = [touch.clientX, touch.clientY];
    }, { passive: true, ...until });
    this.stage.place.addEventListener("touchend", ({ changedTouches: [touch] }) => {
      const [dx, dy] = [touch.clientX - x, touch.clientY - y];
      if (Math.abs(dx) < SWIPE || Math.abs(dx) < 2 * Math.abs(dy)) return;
      this.drive((transport) => (dx < 0 ? transport.next() : transport.previous()));
    }, { passive: true, ...until });
    const observer = new ResizeObserver(() => this.draw());
    observer.observe(this.root);
    const stop = receive("journey", (/** @type {{ step: number, ack: number }} */ at) => this.steer(at));
    this.destroy = () => {
      clearInterval(this.clock);
      this.outbox.destroy();
      observer.disconnect();
      ends.abort();
      stop();
    };
  }

  destroy() {}

  /** @param {Data} data */
  async update(data) {
    const turn = ++this.newest;
    const images = await decoded(data.images);
    if (turn !== this.newest) return; // the old picture stays until the newest one can be drawn
    this.data = data;
    this.ready = true;
    this.stage.images = images;
    this.stage.scene = undefined;
    setVariables(this.root, data.colours);
    this.root.classList.toggle("large", data.stage);
    this.controls.build(data.steps);
    this.controls.choose(data.choice);
    this.words[2].textContent = data.scale;
    this.draw();
  }

  /** The step that the server has, unless a newer one is on its way. @param {{ step: number, ack: number }} at */
  steer({ step, ack }) {
    if (!this.outbox.upToDate(ack) || step === this.transport.step) return;
    this.stepSent = step;
    this.transport.show(step);
    this.draw();
  }

  // ---- what is shown ----

  draw() {
    if (!this.ready) return;
    const narrow = this.root.clientWidth < NARROW, { step, frame } = this.transport;
    const still = this.transport.still || this.printing;
    const { width, scenes } = narrow ? this.data.narrow : this.data.wide;
    this.root.classList.toggle("narrow", narrow);
    const scene = (still && scenes.find((other) => other.step === scenes[step].still)) || scenes[step];
    const tallest = Math.max(...scenes.map(({ height }) => height));
    this.stage.show(scene, width, still ? LAST : frame, narrow ? 0 : tallest);
    this.controls.show(scene.shown);
    this.words[0].textContent = this.data.steps[step].name;
    this.words[1].textContent = scenes[step].question;
    if (this.spoken !== step && !this.transport.playing) {
      this.words[3].textContent = `Step ${step + 1}, ${this.data.steps[step].name}. ${scenes[step].sentence}`;
      this.spoken = step;
    }
  }

  /** @param {(transport: Transport) => void} act */
  drive(act) {
    act(this.transport);
    clearInterval(this.clock);
    if (this.transport.playing) this.clock = setInterval(() => this.tick(), TICK);
    this.draw();
    this.send();
  }

  tick() {
    this.transport.tick();
    if (!this.transport.playing) clearInterval(this.clock);
    this.draw();
    this.send();
  }

  /** Python gets each step once, when it has begun. */
  send() {
    const { step } = this.transport;
    if (step === this.stepSent) return;
    this.stepSent = step;
    this.outbox.send({ step });
  }

  // ---- keys and clicks ----

  /** @param {KeyboardEvent} event */
  key(event) {
    const target = /** @type {HTMLElement} */ (event.composedPath()[0]);
    const own = target === this.controls.scrub;
    const typed = target.closest?.("input, textarea, select, [contenteditable], [role=listbox], [role=radiogroup], [role=slider]");
    if (withModifier(event) || event.defaultPrevented || (typed && !own)) return;
    if (event.key === "ArrowLeft") this.drive((transport) => transport.previous());
    else if (event.key === "ArrowRight") this.drive((transport) => transport.next());
    else if (event.key === " " && !target.closest?.("button, a, summary")) this.drive((transport) => transport.toggle());
    else return;
    event.preventDefault();
  }

  /** @param {MouseEvent} event */
  click(event) {
    const choice = this.stage.under(event);
    if (choice) this.outbox.send({ step: this.transport.step, ...choice });
  }
}

/** @type {Map<string, Promise<CanvasImageSource>>} */
const known = new Map();

/** @param {Record<string, string>} uris @returns {Promise<Map<string, CanvasImageSource>>} */
async function decoded(uris) {
  for (const uri of known.keys()) if (!Object.values(uris).includes(uri)) known.delete(uri);
  const entries = Object.entries(uris).map(async ([name, uri]) => {
    const image = known.get(uri) ?? decode(uri);
    known.set(uri, image);
    return /** @type {[string, CanvasImageSource]} */ ([name, await image]);
  });
  return new Map(await Promise.all(entries));
}

/** @param {string} uri */
async function decode(uri) {
  const image = new Image();
  image.src = uri;
  await image.decode();
  return image;
}

export default component(
  (parent, setState, /** @type {Data} */ data) => new Journey(parent, setState, data),
);
