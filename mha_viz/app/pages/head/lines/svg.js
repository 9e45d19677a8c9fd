// @ts-check
// A pen that writes SVG instead of painting: the part of a canvas context that the lines use.

const SVG = "http://www.w3.org/2000/svg";
// Characters that XML does not allow would make the whole file unreadable.
// eslint-disable-next-line no-control-regex
const NOT_XML = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]/g;

/** Takes the place of Path2D. */
export class SvgPath {
  constructor() {
    this.d = "";
  }

  /** @param {number} x @param {number} y */
  moveTo(x, y) {
    this.d += `M${x.toFixed(2)} ${y.toFixed(2)}`;
  }

  /** @param {number} x @param {number} y */
  lineTo(x, y) {
    this.d += `L${x.toFixed(2)} ${y.toFixed(2)}`;
  }
}

export class SvgPen {
  /**
   * @param {number} width
   * @param {number} height
   * @param {string} background
   */
  constructor(width, height, background) {
    /** @type {SVGElement} */
    this.root = document.createElementNS(SVG, "svg");
    setAttributes(this.root, { width, height, viewBox: `0 0 ${width} ${height}`, xmlns: SVG });
    this.add("rect", { width, height, fill: background });
    this.strokeStyle = this.fillStyle = this.font = "";
    this.globalAlpha = this.lineWidth = 1;
    /** @type {CanvasTextAlign} */
    this.textAlign = "start";
    /** @type {CanvasTextBaseline} */
    this.textBaseline = "alphabetic";
    /** @type {string[]} */
    this.moves = [];
    /** @type {string[]} */
    this.saved = [];
  }

  /** @param {string} tag @param {Record<string, string | number>} attributes */
  add(tag, attributes) {
    /** @type {Element} */
    const node = this.root.appendChild(document.createElementNS(SVG, tag));
    setAttributes(node, attributes);
    return node;
  }

  save() {
    this.saved = [...this.moves];
  }

  restore() {
    this.moves = this.saved;
  }

  // A canvas starts from what was painted before; a file starts empty.
  clearRect() {}

  /** @param {number} x @param {number} y */
  translate(x, y) {
    this.moves.push(`translate(${x.toFixed(2)} ${y.toFixed(2)})`);
  }

  /** @param {number} angle radians */
  rotate(angle) {
    this.moves.push(`rotate(${((angle * 180) / Math.PI).toFixed(2)})`);
  }

  /** @param {SvgPath} path */
  stroke(path) {
    this.add("path", {
      d: path.d, fill: "none", stroke: this.strokeStyle,
      "stroke-width": this.lineWidth.toFixed(2), "stroke-opacity": this.globalAlpha.toFixed(3),
    });
  }

  /** @param {string} text @param {number} x @param {number} y */
  fillText(text, x, y) {
    const anchor = { right: "end", center: "middle" }[String(this.textAlign)] ?? "start";
    const baseline = this.textBaseline === "middle" ? "central" : "alphabetic";
    this.add("text", {
      x, y, fill: this.fillStyle, style: `font:${this.font};white-space:pre`, "text-anchor": anchor,
      "dominant-baseline": baseline, transform: this.moves.join(" "),
    }).textContent = text;
  }

  file() {
    const text = new XMLSerializer().serializeToString(this.root);
    return new Blob([text.replace(NOT_XML, "\ufffd")], { type: "image/svg+xml" });
  }
}

/** @param {Element} node @param {Record<string, string | number>} attributes */
function setAttributes(node, attributes) {
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, String(value));
}
