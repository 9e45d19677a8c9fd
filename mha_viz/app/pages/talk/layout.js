// @ts-check
// What the player shows besides the scenes: title, sentence, choices, dots and buttons.

import { element, setVariables } from "../../browser/dom.js";

/** @import { Data } from "./play_button.js" */
/** @import { Press } from "./presses.js" */

/**
 * What a button does, by its name.
 * @typedef {Record<"back" | "next" | "explore" | "notes" | "full" | "leave", () => void>} Actions
 */

/** @type {[keyof Actions, string, string][]} action, text, name */
const BUTTONS = [
  ["explore", "Explore", "Explore this scene (E)"],
  ["notes", "Notes", "Notes (N)"],
  ["full", "Full screen", "Full screen (F)"],
  ["leave", "Leave", "Leave the talk (Esc)"],
];

export class Layout {
  /**
   * @param {Data} data
   * @param {Actions} actions
   * @param {(scene: number) => void} goToScene
   * @param {(x: number) => void} tap hears clicks: 0 is at the left edge, 1 at the right
   */
  constructor(data, actions, goToScene, tap) {
    this.data = data;
    this.root = element("div", "talk");
    this.root.role = "dialog";
    this.root.ariaLabel = data.title;
    this.root.tabIndex = -1;
    this.heading = element("h1");
    this.sentence = element("p", "sentence");
    this.about = element("p", "about");
    const header = element("header");
    header.append(this.heading, this.sentence, this.about);
    this.opening = element("p", "opening", data.title);
    this.choices = element("ul", "choices");
    this.picture = element("div", "picture");
    this.picture.append(this.opening, this.choices);
    for (const part of [header, this.picture]) {
      part.addEventListener("click", ({ clientX }) => tap(clientX / window.innerWidth));
    }
    this.dots = element("nav");
    this.dots.ariaLabel = "Scenes";
    data.scenes.forEach(({ title }, scene) => {
      this.dots.append(button("", `Scene ${scene + 1}: ${title}`, () => goToScene(scene)));
    });
    const footer = element("footer");
    footer.append(
      button("‹", "Back", actions.back), this.dots, button("›", "Next", actions.next),
      ...BUTTONS.map(([action, text, name]) => button(text, name, actions[action])),
    );
    this.return = button("Back to the talk (E)", "Back to the talk", actions.explore);
    this.return.className = "return";
    this.return.hidden = true;
    this.black = element("div", "black");
    this.black.hidden = true;
    const style = element("style", "", data.css);
    this.fit = () => {
      const scale = Math.max(1, Math.min(window.innerWidth / 1280, window.innerHeight / 720));
      this.root.style.setProperty("--scale", String(scale));
    };
    this.fit();
    window.addEventListener("resize", this.fit);
    this.root.append(style, header, this.picture, footer, this.return, this.black);
  }

  destroy() {
    window.removeEventListener("resize", this.fit);
    this.root.remove();
  }

  /** @param {Press} press */
  draw({ scene, asks }) {
    const { scenes, title, palettes, theme } = this.data;
    const now = scenes[scene];
    setVariables(this.root, palettes[now?.theme || theme]);
    this.opening.hidden = Boolean(now);
    this.opening.textContent = title;
    this.heading.textContent = now?.title ?? "";
    this.sentence.textContent = now?.sentence ?? "";
    this.about.textContent = now ? `${now.about} · ${scene + 1} / ${scenes.length}` : "";
    this.choices.hidden = !asks;
    this.choices.replaceChildren(...(asks ? now.ask.map((choice) => element("li", "", choice)) : []));
    [...this.dots.children].forEach((dot, of) => {
      dot.ariaCurrent = of === scene ? "step" : null;
    });
  }
}

/**
 * @param {string} text
 * @param {string} name
 * @param {() => void} press
 */
function button(text, name, press) {
  const made = element("button", "", text);
  made.ariaLabel = made.title = name;
  made.addEventListener("click", press);
  return made;
}
