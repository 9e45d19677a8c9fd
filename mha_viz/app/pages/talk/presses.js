// @ts-check
// The presses of a talk in order: its title, each scene, and the answer of a scene that asks first.

/**
 * @typedef {object} Press
 * @property {number} scene -1 for the title of the talk
 * @property {boolean} asks whether the audience guesses, so that the picture is hidden
 */

const NAMED = new Map([
  ["Home", "first"], ["End", "last"], ["Escape", "leave"], ["e", "explore"], ["n", "notes"],
  ["b", "black"], ["f", "full"], ["r", "restore"],
]);

/**
 * @param {{ ask: string[] }[]} scenes
 * @returns {Press[]}
 */
export function pressesOf(scenes) {
  const presses = scenes.flatMap(({ ask }, scene) =>
    ask.length ? [{ scene, asks: true }, { scene, asks: false }] : [{ scene, asks: false }]);
  return [{ scene: -1, asks: false }, ...presses];
}

/**
 * What a key does in a talk; "" for a key that belongs to the page.
 * @param {KeyboardEvent} event
 */
export function actionOf({ key, shiftKey, ctrlKey, altKey, metaKey }) {
  if (ctrlKey || altKey || metaKey) return "";
  if (shiftKey) return key.startsWith("Arrow") ? "page" : "";
  if (["ArrowRight", "ArrowDown", "PageDown", " "].includes(key)) return "next";
  if (["ArrowLeft", "ArrowUp", "PageUp"].includes(key)) return "back";
  const named = NAMED.get(key.length === 1 ? key.toLowerCase() : key);
  return named ?? (/^[1-9]$/.test(key) ? "scene" : "");
}

/**
 * Seconds as minutes and seconds: 8:05.
 * @param {number} seconds
 */
export function clock(seconds) {
  const whole = Math.floor(Math.abs(seconds));
  return `${Math.floor(whole / 60)}:${String(whole % 60).padStart(2, "0")}`;
}

/**
 * How the talk stands against its plan while a scene is shown: "20 s late", "1:05 early" or "on time".
 * @param {number} seconds since the talk began
 * @param {number[]} plan minutes of each scene
 * @param {number} scene
 */
export function delay(seconds, plan, scene) {
  const begins = 60 * plan.slice(0, Math.max(scene, 0)).reduce((sum, minutes) => sum + minutes, 0);
  const ends = begins + 60 * (plan[scene] ?? 0);
  const late = seconds > ends ? seconds - ends : Math.min(seconds - begins, 0);
  if (Math.abs(late) < 1) return "on time";
  const long = Math.abs(late);
  return `${long < 60 ? `${Math.floor(long)} s` : clock(long)} ${late > 0 ? "late" : "early"}`;
}
