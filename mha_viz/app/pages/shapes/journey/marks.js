// @ts-check
// The boxes, lines and texts of a scene as SVG: made once, then moved from frame to frame.

import { at } from "./motion.js";

/** @import { Motion, Rect } from "./motion.js" */

/**
 * @typedef {object} Box
 * @property {"box"} kind
 * @property {Motion} motion
 * @property {string} line a colour, "" for none
 * @property {string} fill a colour, "" for none
 * @property {number} thickness
 * @property {number} radius
 * @property {string} halo the colour of a line around it, "" for none
 */
/**
 * @typedef {object} Line
 * @property {"line"} kind
 * @property {Motion} motion
 * @property {string} colour
 * @property {number} thickness
 * @property {boolean} dashed
 * @property {boolean} arrow
 * @property {number} bend
 */
/**
 * @typedef {object} Text
 * @property {"text"} kind
 * @property {Motion} motion
 * @property {string} text
 * @property {string} colour
 * @property {number} size
 * @property {"start" | "middle" | "end"} anchor
 * @property {boolean} bold
 * @property {boolean} mono
 * @property {string} halo
 * @property {boolean} turned
 * @property {["token" | "head", number] | null} selects
 */
/** @typedef {Box | Line | Text} Mark */

const SVG = "http://www.w3.org/2000/svg";
const HEAD = 8; // pixels: the length of an arrow's head

export class Marks {
  /** @param {SVGElement} place @param {Mark[]} marks @param {number} larger factor of text sizes */
  constructor(place, marks, larger = 1) {
    this.all = marks.map((mark) => ({ mark, node: made(mark, larger) }));
    place.replaceChildren(...this.all.map(({ node }) => node));
  }

  /** @param {number} frame */
  show(frame) {
    for (const { mark, node } of this.all) {
      const { rect, opacity } = at(mark.motion, frame);
      node.style.display = opacity > 0 ? "" : "none";
      node.setAttribute("opacity", String(opacity));
      if (mark.kind === "text") move(node, rect, mark.turned);
      else if (mark.kind === "box") for (const part of node.children) size(part, rect);
      else draw(node, rect, mark);
    }
  }
}

/**
 * @param {string} tag
 * @param {Record<string, string | number>} attributes
 */
export function svg(tag, attributes) {
  const node = /** @type {SVGElement} */ (document.createElementNS(SVG, tag));
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, String(value));
  return node;
}

/** @param {Mark} mark @param {number} larger */
function made(mark, larger) {
  if (mark.kind === "text") return text(mark, larger);
  const group = svg("g", {});
  if (mark.kind === "box") {
    const look = { fill: "none", rx: mark.radius };
    if (mark.halo) group.append(svg("rect", { ...look, stroke: mark.halo, "stroke-width": mark.thickness + 2 }));
    const line = { stroke: mark.line || "none", "stroke-width": mark.thickness };
    group.append(svg("rect", { ...look, ...line, fill: mark.fill || "none" }));
  } else {
    const look = { stroke: mark.colour, "stroke-width": mark.thickness, fill: "none" };
    group.append(svg("path", mark.dashed ? { ...look, "stroke-dasharray": "4 3" } : look));
    if (mark.arrow) group.append(svg("path", { fill: mark.colour }));
  }
  return group;
}

/** @param {Text} mark @param {number} larger */
function text(mark, larger) {
  const node = svg("text", {
    fill: mark.colour,
    "font-size": mark.size * larger,
    "text-anchor": mark.anchor,
    "dominant-baseline": "central",
    class: [mark.mono ? "mono" : "", mark.bold ? "bold" : "", mark.selects ? "selects" : ""].join(" "),
  });
  if (mark.halo) {
    const outline = { stroke: mark.halo, "stroke-width": 3, "paint-order": "stroke" };
    for (const [name, value] of Object.entries(outline)) node.setAttribute(name, String(value));
  }
  node.textContent = mark.text;
  if (mark.selects) node.dataset.selects = mark.selects.join(" ");
  return node;
}

/** @param {SVGElement} node @param {Rect} rect @param {boolean} turned */
function move(node, [x, y], turned) {
  node.setAttribute("transform", `translate(${x} ${y})${turned ? " rotate(-50)" : ""}`);
}

/** @param {Element} node @param {Rect} rect */
function size(node, [x, y, width, height]) {
  node.setAttribute("x", String(x));
  node.setAttribute("y", String(y));
  node.setAttribute("width", String(Math.max(width, 0)));
  node.setAttribute("height", String(Math.max(height, 0)));
}

/** @param {SVGElement} node @param {Rect} rect @param {Line} mark */
function draw(node, [x, y, width, height], mark) {
  const right = x + width, bottom = y + height, middle = x + width / 2;
  const low = (y + bottom) / 2 + 2 * mark.bend; // a curve comes half as low as its control point
  node.children[0].setAttribute("d", `M${x} ${y} Q${middle} ${low} ${right} ${bottom}`);
  if (!mark.arrow) return;
  const length = Math.hypot(right - middle, bottom - low) || 1;
  const [dx, dy] = [(right - middle) / length, (bottom - low) / length];
  const [bx, by] = [right - HEAD * dx, bottom - HEAD * dy];
  const corners = [[right, bottom], [bx - (HEAD / 2) * dy, by + (HEAD / 2) * dx], [bx + (HEAD / 2) * dy, by - (HEAD / 2) * dx]];
  node.children[1].setAttribute("d", `M${corners.map((corner) => corner.join(" ")).join(" L")} Z`);
}
