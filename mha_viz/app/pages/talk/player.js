// @ts-check
// Plays a talk over the whole window: one scene is seen, its neighbours are drawn behind it.

import { component } from "../../browser/component.js";
import { element, find, setVariables } from "../../browser/dom.js";
import { Notes } from "./notes.js";
import { actionOf, pressesOf } from "./presses.js";
import { SceneFrame } from "./scene_frame.js";

/** @import { SetState } from "../../browser/component.js" */

/**
 * @typedef {object} Scene
 * @property {string} title
 * @property {string} sentence
 * @property {string} address relative to the app's first page
 * @property {string} about the model and the head
 * @property {string} notes
 * @property {string} theme
 * @property {string[]} ask
 *
 * @typedef {object} Data
 * @property {string} title
 * @property {Scene[]} scenes
 * @property {number[]} plan minutes of each scene
 * @property {Record<string, Record<string, string>>} palettes
 * @property {"light" | "dark"} theme
 * @property {string} css
 * @property {string} notes_css
 */

const AHEAD = 2; // scenes that are drawn before they are asked for
const EDITABLE = "input, textarea, select, [contenteditable=true], [role=slider], [role=combobox]";
const PRESSED = "button, a, [role=button], [role=tab], [role=radio], summary";
const ASIDE = ["stage", "scene", "embed", "embed_options"]; // parameters of a scene, not of a page

export class Player {
  /**
   * @param {Data} data
   * @param {(scene: number) => void} onEnd hears the last scene shown
   */
  constructor(data, onEnd) {
    this.data = data;
    this.onEnd = onEnd;
    this.presses = pressesOf(data.scenes);
    this.at = 0;
    /** @type {number | null} the press that waits for its picture */
    this.pending = null;
    this.begun = 0;
    /** @type {Map<number, SceneFrame>} */
    this.frames = new Map();
    /** @type {Map<number, string>} where scenes were left whose frames are gone */
    this.left = new Map();
    /** @type {SceneFrame | null} */
    this.explored = null;
    this.onKey = (/** @type {KeyboardEvent} */ event) => this.key(event);

    this.root = element("div", "talk");
    this.root.role = "dialog";
    this.root.ariaLabel = data.title;
    this.root.tabIndex = -1;
    this.style = element("style", "", data.css);
    this.heading = element("h1");
    this.sentence = element("p", "sentence");
    this.about = element("p", "about");
    this.header = element("header");
    this.header.append(this.heading, this.sentence, this.about);
    this.opening = element("p", "opening", data.title);
    this.choices = element("ul", "choices");
    this.picture = element("div", "picture");
    this.picture.append(this.opening, this.choices);
    this.dots = element("nav");
    this.dots.ariaLabel = "Scenes";
    this.notes = new Notes(this);
    this.return = element("button", "return", "Back to the talk (E)");
    this.return.hidden = true;
    this.return.addEventListener("click", () => this.explore());
    this.black = element("div", "black");
    this.black.hidden = true;
    this.root.append(
      this.style, this.header, this.picture, this.notes.below, this.footer(), this.return, this.black,
    );
    document.body.append(this.root);
    this.app = document.getElementById("root");
    if (this.app) this.app.inert = true;
    this.root.focus();
    window.addEventListener("keydown", this.onKey, true);
    this.header.addEventListener("click", (event) => {
      this.go(this.at + (event.clientX < window.innerWidth / 2 ? -1 : 1));
    });
    this.draw();
  }

  footer() {
    const footer = element("footer");
    const button = (/** @type {string} */ text, /** @type {string} */ name, /** @type {() => void} */ press) => {
      const made = element("button", "", text);
      made.ariaLabel = made.title = name;
      made.addEventListener("click", press);
      return made;
    };
    this.data.scenes.forEach(({ title }, scene) => {
      this.dots.append(button("", `Scene ${scene + 1}: ${title}`, () => this.goToScene(scene)));
    });
    footer.append(
      button("‹", "Back", () => this.go(this.at - 1)),
      this.dots,
      button("›", "Next", () => this.go(this.at + 1)),
      button("Explore", "Explore this scene (E)", () => this.explore()),
      button("Notes", "Notes (N)", () => this.notes.toggle(this.onKey)),
      button("Full screen", "Full screen (F)", () => this.full()),
      button("Leave", "Leave the talk (Esc)", () => this.destroy()),
    );
    return footer;
  }

  /** The scene that is seen; -1 for the title. */
  get scene() {
    return this.presses[this.at].scene;
  }

  /** Seconds since the first press after the title. */
  get seconds() {
    return this.begun ? (performance.now() - this.begun) / 1000 : 0;
  }

  /** @param {number} scene */
  stateOf(scene) {
    const frame = this.frames.get(scene);
    if (!frame) return "";
    if (frame.failed) return `no picture: ${frame.failed}`;
    return frame.ready ? "ready" : `computing, ${Math.round((performance.now() - frame.begun) / 1000)} s`;
  }

  // ---- what is shown ----

  draw() {
    const { scenes } = this.data;
    const { scene, asks } = this.presses[this.at];
    const now = scenes[scene];
    this.prepare(scene);
    setVariables(this.root, this.data.palettes[now?.theme || this.data.theme]);
    this.opening.hidden = scene >= 0;
    this.heading.textContent = now?.title ?? "";
    this.sentence.textContent = now?.sentence ?? "";
    this.about.textContent = now ? `${now.about} · ${scene + 1} / ${scenes.length}` : "";
    this.choices.hidden = !asks;
    this.choices.replaceChildren(...(asks ? now.ask.map((choice) => element("li", "", choice)) : []));
    for (const [of, frame] of this.frames) frame.show(of === scene && !asks && !frame.failed);
    [...this.dots.children].forEach((dot, of) => {
      dot.ariaCurrent = of === scene ? "step" : null;
    });
    this.notes.draw();
  }

  /**
   * Frames for the scene, the one that is asked for and their neighbours; the others go.
   * @param {number} scene
   * @param {number} [asked]
   */
  prepare(scene, asked = scene) {
    const wanted = [asked, scene];
    for (let more = 1; more <= AHEAD; more += 1) wanted.push(asked + more);
    wanted.push(asked - 1);
    for (const [of, frame] of this.frames) {
      if (wanted.includes(of)) continue;
      this.left.set(of, frame.address);
      frame.destroy();
      this.frames.delete(of);
    }
    for (const of of wanted) {
      if (!this.data.scenes[of] || this.frames.has(of)) continue;
      this.frames.set(of, this.frameOf(of, this.left.get(of) ?? this.addressOf(of)));
    }
  }

  /**
   * @param {number} scene
   * @param {string} address
   */
  frameOf(scene, address) {
    return new SceneFrame(this.picture, address, this.data.scenes[scene].title, this.onKey, () => {
      const { pending } = this;
      this.pending = null;
      if (pending !== null && this.presses[pending].scene === scene) this.go(pending);
      else {
        this.pending = pending;
        this.draw();
      }
    });
  }

  /** @param {number} scene */
  addressOf(scene) {
    const { address, theme } = this.data.scenes[scene];
    const made = new URL(address, base());
    for (const name of ["stage", "scene", "embed"]) made.searchParams.set(name, "true");
    made.searchParams.set("embed_options", `${theme || this.data.theme}_theme`);
    return made.href;
  }

  // ---- what is pressed ----

  /**
   * Shows a press, or waits for its picture while the present scene stays. Asked again, it waits no
   * longer.
   * @param {number} press
   */
  go(press) {
    if (press < 0 || press >= this.presses.length) return;
    this.explored?.destroy();
    this.explored = null;
    this.return.hidden = true;
    const { scene, asks } = this.presses[press];
    const again = this.pending === press;
    this.pending = null;
    if (scene >= 0 && !asks && !again && !this.frames.get(scene)?.ready) {
      this.pending = press;
      this.prepare(this.scene, scene);
      return;
    }
    if (press > 0 && !this.begun) this.begun = performance.now();
    this.at = press;
    this.draw();
    this.root.focus();
  }

  /** @param {number} scene */
  goToScene(scene) {
    const press = this.presses.findIndex((one) => one.scene === scene);
    if (press >= 0) this.go(press);
  }

  /** Opens the scene's page with all its controls, or goes back to the scene as it was. */
  explore() {
    const scene = this.frames.get(this.scene);
    if (this.explored) {
      this.explored.destroy();
      this.explored = null;
      this.root.focus();
    } else if (scene) {
      const address = new URL(scene.address);
      for (const name of ASIDE) address.searchParams.delete(name);
      address.searchParams.set("from_talk", "true");
      this.explored = new SceneFrame(this.root, address.href, "Explore", this.onKey, () => {});
      this.explored.frame.classList.add("explored");
      this.explored.show(true);
    }
    this.return.hidden = !this.explored;
  }

  restore() {
    const { scene } = this;
    if (scene < 0) return;
    this.frames.get(scene)?.destroy();
    this.left.delete(scene);
    this.frames.set(scene, this.frameOf(scene, this.addressOf(scene)));
    this.draw();
  }

  full() {
    if (document.fullscreenElement) document.exitFullscreen();
    else this.root.requestFullscreen?.().catch(() => undefined);
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    const action = actionOf(event);
    const target = /** @type {Element | null} */ (event.target);
    if (!action || target?.closest?.(EDITABLE)) return;
    if (event.key === " " && target?.closest?.(PRESSED)) return;
    if (this.explored && !["explore", "leave"].includes(action)) return;
    event.preventDefault();
    event.stopImmediatePropagation();
    if (!this.black.hidden) this.black.hidden = true;
    else if (action === "next") this.go(this.at + 1);
    else if (action === "back") this.go(this.at - 1);
    else if (action === "first") this.go(0);
    else if (action === "last") this.go(this.presses.length - 1);
    else if (action === "scene") this.goToScene(Number(event.key) - 1);
    else if (action === "page") this.frames.get(this.scene)?.press(event.key);
    else if (action === "explore") this.explore();
    else if (action === "restore") this.restore();
    else if (action === "notes") this.notes.toggle(this.onKey);
    else if (action === "black") this.black.hidden = false;
    else if (action === "full") this.full();
    else if (this.explored) this.explore();
    else this.destroy();
  }

  destroy() {
    if (!this.root.isConnected) return;
    window.removeEventListener("keydown", this.onKey, true);
    for (const frame of this.frames.values()) frame.destroy();
    this.explored?.destroy();
    this.notes.destroy();
    if (document.fullscreenElement) document.exitFullscreen();
    this.root.remove();
    if (this.app) this.app.inert = false;
    this.onEnd(this.scene);
  }
}

/** The address of the app's first page. */
function base() {
  return new URL(location.pathname.replace(/[^/]*$/, ""), location.origin);
}

class PlayButton {
  /**
   * @param {HTMLElement | ShadowRoot} parent
   * @param {SetState} setState
   * @param {Data} data
   */
  constructor(parent, setState, data) {
    this.data = data;
    /** @type {Player | null} */
    this.player = null;
    this.button = find(parent, "button");
    this.button.addEventListener("click", () => {
      this.player?.destroy();
      this.player = new Player(this.data, (scene) => setState("left", scene));
    });
  }

  /** @param {Data} data */
  update(data) {
    this.data = data;
  }

  destroy() {
    this.player?.destroy();
  }
}

export default component(
  (parent, setState, /** @type {Data} */ data) => new PlayButton(parent, setState, data),
);
