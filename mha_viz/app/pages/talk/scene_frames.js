// @ts-check
// The frames of a talk: the scene that is seen, and its neighbours, drawn before they are asked for.

import { SceneFrame } from "./scene_frame.js";

/** @import { Data } from "./play_button.js" */

const AHEAD = 2; // scenes that are drawn before they are asked for
const OF_A_SCENE = ["stage", "scene", "embed"]; // parameters that a page alone does not have

export class SceneFrames {
  /**
   * @param {HTMLElement} parent
   * @param {Data} data
   * @param {(event: KeyboardEvent) => void} onKey
   * @param {(scene: number) => void} onReady
   * @param {(x: number) => void} onTap
   */
  constructor(parent, data, onKey, onReady, onTap) {
    this.parent = parent;
    this.data = data;
    this.onKey = onKey;
    this.onReady = onReady;
    this.onTap = onTap;
    /** @type {Map<number, SceneFrame>} */
    this.frames = new Map();
    /** @type {Map<number, string>} where scenes were left whose frames are gone */
    this.left = new Map();
  }

  /** @param {number} scene */
  get(scene) {
    return this.frames.get(scene);
  }

  /**
   * Frames for the scene that is seen, the one that is asked for and its neighbours; others go.
   * @param {number} seen
   * @param {number} asked
   */
  prepare(seen, asked) {
    const wanted = [asked, seen];
    for (let more = 1; more <= AHEAD; more += 1) wanted.push(asked + more);
    wanted.push(asked - 1);
    for (const [scene, frame] of this.frames) {
      if (wanted.includes(scene)) continue;
      this.left.set(scene, frame.address);
      frame.destroy();
      this.frames.delete(scene);
    }
    for (const scene of wanted) {
      if (this.data.scenes[scene] && !this.frames.has(scene)) this.open(scene);
    }
  }

  /** @param {number} scene */
  open(scene) {
    const { title } = this.data.scenes[scene];
    const address = this.left.get(scene) ?? this.addressOf(scene);
    const ready = () => this.onReady(scene);
    const frame = new SceneFrame(this.parent, address, title, this.onKey, ready, this.onTap);
    this.frames.set(scene, frame);
  }

  /** Shows one scene, or none. @param {number | null} seen */
  show(seen) {
    for (const [scene, frame] of this.frames) frame.show(scene === seen && !frame.failed);
  }

  /** Throws away what was changed in a scene. @param {number} scene */
  restore(scene) {
    this.frames.get(scene)?.destroy();
    this.left.delete(scene);
    this.open(scene);
  }

  /** @param {number} scene */
  addressOf(scene) {
    const { address, theme } = this.data.scenes[scene];
    const made = new URL(address, new URL(location.pathname.replace(/[^/]*$/, ""), location.origin));
    for (const name of OF_A_SCENE) made.searchParams.set(name, "true");
    made.searchParams.set("embed_options", `${theme || this.data.theme}_theme`);
    return made.href;
  }

  /** The page of a scene as it is now, with all its controls. @param {number} scene */
  pageOf(scene) {
    const made = new URL(this.frames.get(scene)?.address ?? this.addressOf(scene));
    for (const name of [...OF_A_SCENE, "embed_options"]) made.searchParams.delete(name);
    made.searchParams.set("from_talk", "true");
    return made.href;
  }

  /** @param {number} scene */
  stateOf(scene) {
    const frame = this.frames.get(scene);
    if (!frame) return "";
    if (frame.failed) return `no picture: ${frame.failed}`;
    if (frame.ready) return "ready";
    return `computing, ${Math.round((performance.now() - frame.begun) / 1000)} s`;
  }

  destroy() {
    for (const frame of this.frames.values()) frame.destroy();
  }
}
