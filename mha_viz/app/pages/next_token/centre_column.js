// @ts-check
// Scrolls the box of tokens sideways until a column is in its middle: when the column changes, and
// when the box is a new one. In between, the box stays where the user has scrolled it.

/**
 * @typedef {object} Centring
 * @property {Element | null} box the box that has been scrolled
 * @property {() => void} scroll
 * @property {MutationObserver} [observer]
 */
/** @typedef {Window & { mhaVizCentring?: Centring }} Page */

const NAMES = 7.5; // rem beside the columns, for the names of the rows; also in style.css

/** @param {number} share where the middle of the column lies among all columns, from 0 to 1 */
export default function centreColumn(share) {
  const page = /** @type {Page} */ (window);
  const centring = (page.mhaVizCentring ??= { box: null, scroll() {} });
  centring.box = null;
  centring.scroll = () => {
    const box = document.querySelector(".st-key-tokens_box");
    if (!box || box === centring.box || box.scrollWidth <= box.clientWidth) return;
    centring.box = box;
    const names = NAMES * parseFloat(getComputedStyle(document.documentElement).fontSize);
    box.scrollLeft = names + share * (box.scrollWidth - names) - box.clientWidth / 2;
  };
  if (!centring.observer) {
    centring.observer = new MutationObserver(() => centring.scroll());
    centring.observer.observe(document.body, { childList: true, subtree: true });
  }
  centring.scroll();
}
