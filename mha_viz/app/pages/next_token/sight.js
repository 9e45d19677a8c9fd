// Moves the box of tokens sideways, until column SHARE of its columns is in the middle: when that
// changes, and when the box is a new one. In between it stays where a finger has put it.

{
  const NAMES = 7.5; // rem beside the columns, for what names the rows; style.css gives as much
  const sight = (window.mhaVizSight ??= {});
  sight.box = null;
  sight.look = () => {
    const box = document.querySelector(".st-key-tokens_box");
    if (!box || box === sight.box || box.scrollWidth <= box.clientWidth) return;
    sight.box = box;
    const names = NAMES * parseFloat(getComputedStyle(document.documentElement).fontSize);
    box.scrollLeft = names + SHARE * (box.scrollWidth - names) - box.clientWidth / 2;
  };
  if (!sight.observer) {
    sight.observer = new MutationObserver(() => sight.look());
    sight.observer.observe(document.body, { childList: true, subtree: true });
  }
  sight.look();
}
