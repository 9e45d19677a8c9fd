// @ts-check
// Plays a talk over the whole window: goes from press to press, by keys and buttons.

import { Layout } from "./layout.js";
import { Notes } from "./notes.js";
import { actionOf, pressesOf } from "./presses.js";
import { SceneFrame } from "./scene_frame.js";
import { SceneFrames } from "./scene_frames.js";

/** @import { Data } from "./play_button.js" */

const EDITABLE = "input, textarea, select, [contenteditable=true], [role=slider], [role=combobox]";
const PRESSED = "button, a, [role=button], [role=tab], [role=radio], summary";

export class Player {
  /**
   * @param {Data} data
   * @param {(scene: number) => void} onEnd hears the last scene that was shown
   */
  constructor(data, onEnd) {
    this.data = data;
    this.onEnd = onEnd;
    this.presses = pressesOf(data.scenes);
    this.at = 0;
    /** @type {number | null} the press that waits for its picture */
    this.pending = null;
    this.begun = 0; // when the clock began to run; 0 while it stands
    this.spent = 0; // milliseconds that it had run before
    /** @type {SceneFrame | null} */
    this.explored = null;
    this.onKey = (/** @type {KeyboardEvent} */ event) => this.key(event);
    this.notes = new Notes(this);
    this.layout = new Layout(data, {
      back: () => this.go(this.at - 1),
      next: () => this.go(this.at + 1),
      explore: () => this.explore(),
      notes: () => this.notes.toggle(this.onKey),
      full: () => this.full(),
      leave: () => this.destroy(),
    }, (scene) => this.goToScene(scene), (x) => this.tap(x));
    this.root = this.layout.root;
    this.layout.picture.after(this.notes.below);
    this.frames = new SceneFrames(
      this.layout.picture, data, this.onKey, (scene) => this.arrived(scene), (x) => this.tap(x),
    );
    document.body.append(this.root);
    this.app = document.getElementById("root");
    if (this.app) this.app.inert = true;
    window.addEventListener("keydown", this.onKey, true);
    this.draw();
    this.root.focus();
  }

  /** The scene that is seen; -1 for the title. */
  get scene() {
    return this.presses[this.at].scene;
  }

  /** Seconds since the first press after the title. */
  get seconds() {
    return (this.spent + (this.begun ? performance.now() - this.begun : 0)) / 1000;
  }

  /** Pauses the clock, or lets it run again. */
  pause() {
    if (this.begun) this.spent = 1000 * this.seconds;
    this.begun = this.begun || !this.spent ? 0 : performance.now();
    this.notes.draw();
  }

  /** The left half of the screen leads back, the right half on. @param {number} x from 0 to 1 */
  tap(x) {
    this.go(this.at + (x < 0.5 ? -1 : 1));
  }

  /** The scene that comes next: the one that is asked for, if one is. */
  get next() {
    return this.pending === null ? this.scene + 1 : this.presses[this.pending].scene;
  }

  draw() {
    const press = this.presses[this.at];
    this.frames.prepare(press.scene, this.presses[this.pending ?? this.at].scene);
    this.frames.show(press.asks ? null : press.scene);
    this.layout.draw(press);
    this.notes.draw();
  }

  /**
   * Shows a press, or waits for its picture while the present scene stays. Asked again, it waits no
   * longer.
   * @param {number} press
   */
  go(press) {
    if (press < 0 || press >= this.presses.length) return;
    this.endExploring();
    const { scene, asks } = this.presses[press];
    if (scene >= 0 && !asks && this.pending !== press && !this.frames.get(scene)?.ready) {
      this.pending = press;
    } else {
      this.pending = null;
      this.at = press;
      if (press > 0 && !this.seconds) this.begun = performance.now();
    }
    this.draw();
    this.root.focus();
  }

  /** @param {number} scene */
  goToScene(scene) {
    const press = this.presses.findIndex((one) => one.scene === scene);
    if (press >= 0) this.go(press);
  }

  /** @param {number} scene one that has just been drawn */
  arrived(scene) {
    if (this.pending !== null && this.presses[this.pending].scene === scene) this.go(this.pending);
    else this.draw();
  }

  /** Opens the scene's page with all its controls, or goes back to the scene as it was. */
  explore() {
    if (this.explored) {
      this.endExploring();
      this.root.focus();
    } else if (this.scene >= 0) {
      const page = this.frames.pageOf(this.scene);
      this.explored = new SceneFrame(this.root, page, "Explore", this.onKey, () => {});
      this.explored.frame.classList.add("explored");
      this.explored.show(true);
      this.layout.return.hidden = false;
    }
  }

  endExploring() {
    this.explored?.destroy();
    this.explored = null;
    this.layout.return.hidden = true;
  }

  restore() {
    if (this.scene < 0) return;
    this.frames.restore(this.scene);
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
    const { black } = this.layout;
    if (!black.hidden) black.hidden = true;
    else if (action === "next") this.go(this.at + 1);
    else if (action === "back") this.go(this.at - 1);
    else if (action === "first") this.go(0);
    else if (action === "last") this.go(this.presses.length - 1);
    else if (action === "scene") this.goToScene(Number(event.key) - 1);
    else if (action === "page") this.frames.get(this.scene)?.press(event.key);
    else if (action === "explore") this.explore();
    else if (action === "restore") this.restore();
    else if (action === "notes") this.notes.toggle(this.onKey);
    else if (action === "black") black.hidden = false;
    else if (action === "full") this.full();
    else if (this.explored) this.explore();
    else this.destroy();
  }

  destroy() {
    if (!this.root.isConnected) return;
    window.removeEventListener("keydown", this.onKey, true);
    this.frames.destroy();
    this.endExploring();
    this.notes.destroy();
    if (document.fullscreenElement) document.exitFullscreen();
    this.layout.destroy();
    if (this.app) this.app.inert = false;
    this.onEnd(this.scene);
  }
}
