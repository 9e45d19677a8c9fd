// @ts-check
// One click or key press makes one entry in the browser's history. Streamlit makes no entry for the
// state of its own widgets, but one for every other message that changes the address bar: one for a
// page, then another for the token that is pinned on it. Here the first change after a press adds an
// entry, and later changes replace it until the next press. A key that is held down is one press.

import { isFirstCall } from "./browser/once.js";

/** Changes how the page's history is written; further calls do nothing. */
export default function oneEntryPerPress() {
  if (!isFirstCall("one entry per press")) return;
  const { pushState, replaceState } = history;
  let pressed = false;
  const press = (/** @type {Event & { repeat?: boolean }} */ event) => { pressed ||= !event.repeat; };
  for (const kind of ["pointerdown", "keydown"]) window.addEventListener(kind, press, true);
  // Changes after Back belong to the entry that it returned to.
  window.addEventListener("popstate", () => { pressed = false; }, true);
  history.pushState = history.replaceState = function (state, title, url) {
    const moves = url != null && new URL(url, location.href).href !== location.href;
    (pressed && moves ? pushState : replaceState).call(this, state, title, url);
    if (moves) pressed = false;
  };
}
