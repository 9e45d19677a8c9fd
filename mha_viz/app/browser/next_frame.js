// @ts-check
// However many things change between two frames, the browser draws once.

export class NextFrame {
  /** @param {() => void} draw */
  constructor(draw) {
    this.draw = draw;
    /** @type {number | null} */
    this.pending = null;
  }

  request() {
    this.pending ??= requestAnimationFrame(() => {
      this.pending = null;
      this.draw();
    });
  }

  destroy() {
    if (this.pending !== null) cancelAnimationFrame(this.pending);
  }
}
