// @ts-check
// The speaker's notes, in a second window of the same browser or, if that is blocked, below the scene.

import { element } from "../../browser/dom.js";
import { clock, delay } from "./presses.js";

/** @import { Player } from "./player.js" */

const KEYS = [
  ["→ ←", "next, back; a clicker too"],
  ["E", "explore this scene; E again: back"],
  ["R", "restore the scene"],
  ["B", "black screen"],
  ["1 … 9", "go to a scene"],
  ["Esc", "leave"],
];

export class Notes {
  /** @param {Player} player */
  constructor(player) {
    this.player = player;
    /** @type {Window | null} */
    this.window = null;
    this.below = element("div", "notes below");
    this.below.hidden = true;
    this.press = (/** @type {MouseEvent} */ { target }) => {
      if (/** @type {Element} */ (target).closest(".clock")) this.player.pause();
    };
    this.below.addEventListener("click", this.press);
    this.timer = setInterval(() => this.tick(), 500);
    this.leave = () => this.window?.close();
    window.addEventListener("pagehide", this.leave);
  }

  /** @param {(event: KeyboardEvent) => void} onKey */
  toggle(onKey) {
    if (this.window && !this.window.closed) {
      this.window.focus();
      return;
    }
    if (!this.below.hidden) {
      this.below.hidden = true;
      return;
    }
    this.window = window.open("", "_blank", "width=1280,height=720");
    if (!this.window) {
      this.below.hidden = false;
    } else {
      this.window.document.title = `Notes: ${this.player.data.title}`;
      const style = element("style", "", this.player.data.notes_css);
      this.window.document.head.replaceChildren(style);
      this.window.addEventListener("keydown", onKey);
      this.window.document.body.addEventListener("click", this.press);
    }
    this.draw();
  }

  draw() {
    const { scene, next } = this.player;
    for (const place of this.places()) {
      // What is there stays, so that a click on it is heard.
      if (place.dataset.shows === `${scene} ${next}`) continue;
      place.dataset.shows = `${scene} ${next}`;
      place.replaceChildren(...this.content());
    }
    this.tick();
  }

  /** Where the notes are seen. */
  places() {
    const body = this.window && !this.window.closed ? [this.window.document.body] : [];
    return this.below.hidden ? body : [...body, this.below];
  }

  /** Writes what changes while a scene is shown: the time, and how far the next scene is. */
  tick() {
    const { data: { plan }, scene, next, seconds, begun, frames } = this.player;
    const late = seconds ? delay(seconds, plan, scene) : "starts with the first press";
    const texts = {
      clock: clock(seconds),
      delay: seconds && !begun ? `paused, ${late}` : late,
      state: frames.stateOf(next),
    };
    for (const place of this.places()) {
      for (const [name, text] of Object.entries(texts)) {
        const line = place.querySelector(`.${name}`);
        if (line) line.textContent = text;
      }
    }
  }

  content() {
    const { data: { scenes, title, plan }, scene } = this.player;
    const now = scenes[scene];
    const left = element("main");
    const heading = element("h1");
    heading.append(
      element("span", "number", scene < 0 ? "Title " : `${scene + 1} of ${scenes.length} `),
      now?.title ?? title,
    );
    const lines = element("ul");
    for (const line of (now?.notes ?? "").split("\n").filter((text) => text.trim())) {
      lines.append(element("li", "", line));
    }
    left.append(heading, element("p", "sentence", now?.sentence ?? ""), lines);
    const next = element("p", "next");
    const after = scenes[this.player.next];
    next.append("Next: ", element("b", "", after?.title ?? "the end"), element("span", "state"));
    const time = element("aside");
    const timer = element("button", "clock");
    timer.title = "Pause or continue";
    time.append(
      timer,
      element("p", "", `of ${clock(60 * plan.reduce((sum, n) => sum + n, 0))}`),
      element("p", "delay"),
    );
    const list = element("ol");
    scenes.forEach(({ title: name, ask }, number) => {
      const row = element("li", number === scene ? "now" : number < scene ? "past" : "", name);
      if (ask.length) row.append(element("span", "reveal", "reveal"));
      list.append(row);
    });
    const keys = element("dl");
    for (const [key, does] of KEYS) keys.append(element("dt", "", key), element("dd", "", does));
    time.append(list, keys);
    left.append(next);
    return [left, time];
  }

  destroy() {
    clearInterval(this.timer);
    window.removeEventListener("pagehide", this.leave);
    this.below.remove();
    this.window?.close();
  }
}
