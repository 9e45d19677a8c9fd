// @ts-check
// Play, pause, step and scrub: which frame of which step is shown. It knows no page and no clock.

import { FRAMES, LAST } from "./motion.js";

export const REST = 14; // ticks that the last frame of a step stays while it plays

export class Transport {
  /** @param {number} n steps */
  constructor(n) {
    this.n = n;
    this.step = 0;
    this.frame = LAST;
    this.still = false; // no motion: only last frames are shown
    /** @type {"" | "step" | "all"} what plays: nothing, this step, or all that follow */
    this.playing = "";
    this.rested = 0;
  }

  /** The place among all frames, for a scrubber. */
  get place() {
    return this.step * FRAMES + this.frame;
  }

  /** @param {number} place among all frames */
  seek(place) {
    const within = Math.min(Math.max(Math.round(place), 0), this.n * FRAMES - 1);
    this.playing = "";
    this.step = Math.floor(within / FRAMES);
    this.frame = this.still ? LAST : within % FRAMES;
  }

  /** @param {number} step whose last frame is shown */
  show(step) {
    this.seek((Math.min(Math.max(step, 0), this.n - 1) + 1) * FRAMES - 1);
  }

  /** To the end of this step; from there the next one plays, up to its end. */
  next() {
    const ended = this.frame >= LAST;
    if (!ended || this.still) {
      this.show(this.step + (ended ? 1 : 0));
    } else if (this.step < this.n - 1) {
      this.begin(this.step + 1, "step");
    }
  }

  previous() {
    this.show(this.step - 1);
  }

  /** Plays from here, from the first step if all is over, or pauses. */
  toggle() {
    if (this.playing) {
      this.playing = "";
    } else if (this.frame < LAST) {
      this.playing = "all";
    } else {
      this.begin(this.step < this.n - 1 ? this.step + 1 : 0, "all");
    }
  }

  /** @param {number} step @param {"step" | "all"} playing */
  begin(step, playing) {
    Object.assign(this, { step, playing, frame: this.still ? LAST : 0, rested: 0 });
  }

  /** One twelfth of a second passes. */
  tick() {
    if (!this.playing) return;
    if (this.frame < LAST) {
      this.frame += 1;
      this.rested = 0;
      if (this.frame === LAST && (this.playing === "step" || this.step === this.n - 1)) this.playing = "";
    } else if (++this.rested >= REST) {
      if (this.step < this.n - 1) this.begin(this.step + 1, "all");
      else this.playing = "";
    }
  }
}
