// @ts-check
// The positions of everything in the drawing. The tokens run along one direction, down the page or
// across it. In the other direction, there are two sides: the tokens that look (queries) and the
// tokens that they look at (keys).

/** @typedef {"query" | "key"} Side */
/** @typedef {{ at: number, side: Side }} End a token on one of the sides */

const GAP = 300; // pixels between the sides of the horizontal drawing
const LONGEST = 960; // pixels of the vertical drawing, unless there are more tokens than pixels
const NARROW = 480; // pixels of width below which the titles of the sides are short
const LANES = 2.5; // pixels between the lines that several heads draw between the same tokens

export class Geometry {
  /**
   * @param {object} given
   * @param {number} given.width pixels of the drawing
   * @param {number} given.length tokens of the text
   * @param {number} given.size font size in pixels
   * @param {number} given.longest pixels of the longest label
   * @param {boolean} given.vertical whether the tokens run down the page
   */
  constructor({ width, length, size, longest, vertical }) {
    const narrow = width < NARROW;
    const title = vertical ? (narrow ? 2.5 : 5) * size : 0;
    const labelLength = Math.max(title, Math.min(longest, 11 * size) + 12);
    const titleHeight = size + 10;
    this.width = width;
    this.length = length;
    this.size = size;
    this.vertical = vertical;
    this.narrow = narrow;
    /** Pixels from token to token. */
    this.pitch = vertical ? Math.max(1, Math.min(size + 7, LONGEST / length)) : (width - 2 * size) / length;
    /** Whether labels are turned by 90 degrees, to fit above and below the lines. */
    this.turned = !vertical && labelLength > this.pitch;
    const label = vertical || this.turned ? labelLength : size + 10;
    this.height = vertical ? titleHeight + length * this.pitch + 4 : 2 * (titleHeight + label) + GAP;
    /** Where the first token begins. */
    this.start = vertical ? titleHeight : size;
    /** Where the lines end, across, at each side. */
    this.ends = {
      query: vertical ? label : titleHeight + label,
      key: vertical ? width - label : this.height - titleHeight - label,
    };
  }

  /**
   * The middle of a token along the text, in pixels.
   * @param {number} position
   */
  along(position) {
    return this.start + (position + 0.5) * this.pitch;
  }

  /**
   * How far a head's lines are shifted from the middle, so that those of several heads can be told
   * apart.
   * @param {number} index of the head among those drawn
   * @param {number} count
   */
  lane(index, count) {
    return (index - (count - 1) / 2) * Math.min(LANES, (0.7 * this.pitch) / count);
  }

  /**
   * The point at these distances along the text and across the sides, as x and y.
   * @param {number} along
   * @param {number} across
   * @returns {[x: number, y: number]}
   */
  point(along, across) {
    return this.vertical ? [across, along] : [along, across];
  }

  /**
   * The token at a point of the drawing and the side that it is nearer to; null beyond the tokens.
   * @param {number} x
   * @param {number} y
   * @returns {End | null}
   */
  endAt(x, y) {
    const [along, across] = this.vertical ? [y, x] : [x, y];
    const at = Math.floor((along - this.start) / this.pitch);
    if (at < 0 || at >= this.length) return null;
    return { at, side: across < (this.ends.query + this.ends.key) / 2 ? "query" : "key" };
  }

  /**
   * The positions whose labels fit beside those in `taken` and beside one another; positions early
   * in the list have priority.
   * @param {Iterable<number>} positions
   * @param {number[]} [taken]
   */
  withRoom(positions, taken = []) {
    const gap = this.vertical || this.turned ? this.size + 1 : 1;
    const slot = (/** @type {number} */ at) => Math.floor(this.along(at) / gap);
    const slots = new Map(taken.map((at) => [slot(at), at]));
    const free = (/** @type {number} */ at) => [-1, 0, 1].every((step) => {
      const neighbour = slots.get(slot(at) + step);
      return neighbour === undefined || Math.abs(this.along(neighbour) - this.along(at)) >= gap;
    });
    const found = [];
    for (const at of positions) {
      if (!free(at)) continue;
      slots.set(slot(at), at);
      found.push(at);
    }
    return found;
  }
}
