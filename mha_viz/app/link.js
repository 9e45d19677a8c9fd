// @ts-check
// One click or key press makes one entry in the browser's history. Streamlit makes none for what a
// widget of its own holds, and one for each other message that changes the address bar: a page, then
// what is pinned on it. Here the first change after a press is an entry, and what is written until
// the next press belongs to it. A key that is held down is one press.

import { isFirstCall } from "./browser/once.js";

/** Changes how the page's history is written, once however often it is called. */
export default function oneEntryPerPress() {
  if (!isFirstCall("one entry per press")) return;
  const { pushState, replaceState } = history;
  let pressed = false;
  const press = (/** @type {Event & { repeat?: boolean }} */ event) => { pressed ||= !event.repeat; };
  for (const kind of ["pointerdown", "keydown"]) window.addEventListener(kind, press, true);
  // What follows Back belongs to the entry that was gone back to.
  window.addEventListener("popstate", () => { pressed = false; }, true);
  history.pushState = history.replaceState = function (state, title, url) {
    const moves = url != null && new URL(url, location.href).href !== location.href;
    (pressed && moves ? pushState : replaceState).call(this, state, title, url);
    if (moves) pressed = false;
  };
}
