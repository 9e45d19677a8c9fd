// One press makes at most one entry in the browser's history. Streamlit makes one for each message
// that changes the address bar: a page, then what is pinned on it; a text, then each pin that it
// ends. Whatever is written since the last press belongs to that press, so it replaces its entry.

if (!window.mhaVizHistory) {
  window.mhaVizHistory = true;
  const { pushState, replaceState } = history;
  let pressed = false;
  const press = () => { pressed = true; };
  const used = () => { pressed = false; };
  for (const kind of ["pointerdown", "keydown"]) window.addEventListener(kind, press, true);
  window.addEventListener("popstate", used, true); // what follows belongs to the entry gone back to
  history.pushState = function (...args) {
    (pressed ? pushState : replaceState).apply(this, args);
    used();
  };
  history.replaceState = function (...args) {
    replaceState.apply(this, args);
    used();
  };
}
