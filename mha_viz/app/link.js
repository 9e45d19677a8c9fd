// One press makes one entry in the browser's history. Streamlit makes none for what a widget of its
// own holds, and one for each other message that changes the address bar: a page, then what is
// pinned on it. Here the first change after a press is an entry, and what is written until the next
// press belongs to it. A key that is held down is one press.

if (!window.mhaVizHistory) {
  window.mhaVizHistory = true;
  const { pushState, replaceState } = history;
  let pressed = false;
  const press = (event) => { pressed ||= !event.repeat; };
  for (const kind of ["pointerdown", "keydown"]) window.addEventListener(kind, press, true);
  // What follows belongs to the entry that was gone back to.
  window.addEventListener("popstate", () => { pressed = false; }, true);
  history.pushState = history.replaceState = function (state, title, url) {
    const moves = url != null && new URL(url, location.href).href !== location.href;
    (pressed && moves ? pushState : replaceState).call(this, state, title, url);
    if (moves) pressed = false;
  };
}
