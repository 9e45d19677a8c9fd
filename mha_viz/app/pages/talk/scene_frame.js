// @ts-check
// One scene of a talk: the app itself in a frame, drawn before it is asked for.

import { element } from "../../browser/dom.js";

const LOOK = 150; // milliseconds between two looks at a page that is still drawing
const GIVE_UP = 30_000; // milliseconds
const IDLE = "[data-testid=stApp][data-test-script-state=notRunning]";
const UNFINISHED = "[data-testid^=stSkeleton], .stPlotlyChart:not(:has(.main-svg)), .stProgress";
const DRAWN = ".js-plotly-plot .main-svg, [data-testid^=stBidiComponent]";
const ERROR = "[data-testid=stException], [data-testid=stAlertContentError]";
const ANSWERS = "a, button, label, input, textarea, select, summary, [role], [tabindex], [data-testid^=stBidiComponent], "
  + "[data-testid=stDataFrame], .js-plotly-plot"; // what does something itself when it is clicked
const ARROWS = ["ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown"];

export class SceneFrame {
  /**
   * @param {HTMLElement} parent
   * @param {string} address
   * @param {string} title
   * @param {(event: KeyboardEvent) => void} onKey hears the keys that are pressed inside
   * @param {() => void} onReady
   * @param {(x: number) => void} [onTap] hears clicks beside the figures: 0 is at the left edge, 1 at the right
   */
  constructor(parent, address, title, onKey, onReady, onTap) {
    this.ready = false;
    this.failed = "";
    this.begun = performance.now();
    this.alike = 0; // looks in a row that found the page drawn, and the same
    this.size = -1;
    this.onReady = onReady;
    this.frame = element("iframe");
    this.frame.title = title;
    this.frame.src = address;
    this.frame.addEventListener("load", () => {
      const hear = (/** @type {KeyboardEvent} */ event) => {
        if (event.isTrusted) onKey(event); // the others are those of `press`
      };
      if (!this.frame.contentDocument) return this.end("The server does not answer."); // an error page
      this.window?.addEventListener("keydown", hear, true);
      if (onTap) this.window?.addEventListener("click", (event) => this.tap(event, onTap));
    });
    this.show(false);
    parent.append(this.frame);
    this.timer = setInterval(() => this.look(), LOOK);
  }

  get window() {
    return this.frame.contentWindow;
  }

  /** Where the page is now, with all that was changed in it. */
  get address() {
    const at = this.frame.contentDocument?.location;
    return at && at.href !== "about:blank" ? at.href : this.frame.src;
  }

  look() {
    const page = this.frame.contentDocument;
    const error = page?.querySelector(ERROR)?.textContent;
    const computes = Boolean(page?.querySelector(".stProgress"));
    if (error) this.end(error);
    else if (!computes && performance.now() - this.begun > GIVE_UP) this.end("It drew no picture in time.");
    else if (page?.querySelector(IDLE) && page.querySelector(DRAWN) && !page.querySelector(UNFINISHED)) {
      const size = page.querySelectorAll("*").length;
      this.alike = size === this.size ? this.alike + 1 : 0;
      this.size = size;
      if (this.alike >= 2) this.end("");
    } else {
      this.alike = 0;
    }
  }

  /** @param {string} failed why the page has no picture; "" if it has one */
  end(failed) {
    clearInterval(this.timer);
    this.failed = failed;
    this.ready = true;
    this.frame.dataset.ready = "";
    this.onReady();
  }

  /** A hidden frame keeps its size, so that its page is drawn as it will be seen. @param {boolean} visible */
  show(visible) {
    this.frame.classList.toggle("shown", visible);
    this.frame.inert = !visible;
    this.frame.ariaHidden = String(!visible);
  }

  /**
   * @param {MouseEvent} event
   * @param {(x: number) => void} onTap
   */
  tap(event, onTap) {
    const at = /** @type {Element} */ (event.target);
    const answers = at.closest?.(ANSWERS);
    const app = at.closest?.("[data-testid=stMain]");
    const marked = String(this.window?.getSelection() ?? "");
    if (!event.defaultPrevented && !marked && (!answers || answers.contains(app ?? null))) {
      onTap(event.clientX / (this.window?.innerWidth ?? 1));
    }
  }

  /** @param {string} key an arrow, for the page */
  press(key) {
    const page = this.frame.contentDocument;
    if (!page || !ARROWS.includes(key)) return;
    page.body.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true }));
  }

  destroy() {
    clearInterval(this.timer);
    this.frame.remove();
  }
}
