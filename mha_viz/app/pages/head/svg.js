// A pen that writes SVG where a canvas would paint: as much of a canvas context as the lines use.

const SVG = "http://www.w3.org/2000/svg";

// Takes the place of Path2D.
class SvgPath {
  constructor() {
    this.steps = [];
  }
  moveTo(x, y) {
    this.steps.push(`M${x.toFixed(2)} ${y.toFixed(2)}`);
  }
  lineTo(x, y) {
    this.steps.push(`L${x.toFixed(2)} ${y.toFixed(2)}`);
  }
}

class SvgPen {
  constructor(width, height, ground) {
    this.root = document.createElementNS(SVG, "svg");
    this.set(this.root, { width, height, viewBox: `0 0 ${width} ${height}`, xmlns: SVG });
    this.add("rect", { width, height, fill: ground });
    this.globalAlpha = 1;
    this.moves = [];
  }

  set(node, attributes) {
    for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
    return node;
  }

  add(tag, attributes) {
    return this.root.appendChild(this.set(document.createElementNS(SVG, tag), attributes));
  }

  save() {
    this.kept = [...this.moves];
  }

  restore() {
    this.moves = this.kept;
  }

  clearRect() {}

  translate(x, y) {
    this.moves.push(`translate(${x.toFixed(2)} ${y.toFixed(2)})`);
  }

  rotate(angle) {
    this.moves.push(`rotate(${((angle * 180) / Math.PI).toFixed(2)})`);
  }

  stroke(path) {
    this.add("path", {
      d: path.steps.join(""), fill: "none", stroke: this.strokeStyle,
      "stroke-width": this.lineWidth.toFixed(2), "stroke-opacity": this.globalAlpha.toFixed(3),
    });
  }

  fillText(text, x, y) {
    const anchor = { right: "end", center: "middle" }[this.textAlign] ?? "start";
    const middle = this.textBaseline === "middle" ? "central" : "alphabetic";
    this.add("text", {
      x, y, fill: this.fillStyle, style: `font:${this.font};white-space:pre`, "text-anchor": anchor,
      "dominant-baseline": middle, transform: this.moves.join(" "),
    }).textContent = text;
  }

  // Characters that XML has no place for would make the whole file unreadable.
  file() {
    const text = new XMLSerializer().serializeToString(this.root);
    return new Blob([text.replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]/g, "\ufffd")],
      { type: "image/svg+xml" });
  }
}
