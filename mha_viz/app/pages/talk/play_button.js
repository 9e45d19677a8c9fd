// @ts-check
// The button that plays the talk, and what Python sends for it.

import { component } from "../../browser/component.js";
import { find } from "../../browser/dom.js";
import { Player } from "./player.js";

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
