// @ts-check
// The drawing itself, with any pen: a canvas context, or one that writes SVG.

import { SvgPath, SvgPen } from "./svg.js";

/** @import { Palette } from "../../../browser/colours.js" */
/** @import { End, Geometry, Side } from "./geometry.js" */
/** @import { HeadLines } from "./head_lines.js" */

/** @typedef {CanvasRenderingContext2D | SvgPen} Pen */
/** @typedef {{ palette: Palette, mono: string, sans: string }} Look colours and fonts */

const STEPS = 10; // levels of strength; drawing all lines of a level in one stroke is fast
const FAINTEST = 0.1;
const WIDEST = 3; // pixels
const LABEL_DISTANCE = 6; // pixels between the end of a line and its label

/**
 * Draws a head's lines, at rest or those of a highlighted end.
 * @param {Pen} pen
 * @param {Geometry} geometry
 * @param {HeadLines} head
 * @param {number} lane pixels from the middle
 * @param {string} colour
 * @param {End | null} highlighted
 */
export function drawLines(pen, geometry, head, lane, colour, highlighted) {
  const { query, key } = geometry.ends;
  /** @type {(Path2D | SvgPath | undefined)[]} */
  const paths = Array(STEPS).fill(undefined);
  for (const line of head.of(highlighted)) {
    const step = Math.min(STEPS - 1, Math.floor(Math.sqrt(head.weight(line)) * STEPS));
    const path = (paths[step] ??= pen instanceof SvgPen ? new SvgPath() : new Path2D());
    path.moveTo(...geometry.point(geometry.along(head.queries[line]) + lane, query));
    path.lineTo(...geometry.point(geometry.along(head.keys[line]) + lane, key));
  }
  pen.strokeStyle = colour;
  const widest = highlighted ? WIDEST : Math.min(WIDEST, 0.4 + geometry.pitch / 6);
  for (const [step, path] of paths.entries()) {
    if (!path) continue;
    const strength = (step + 0.5) / STEPS;
    const atRest = FAINTEST + (1 - FAINTEST) * strength ** 1.5;
    pen.globalAlpha = highlighted ? Math.max(0.35, strength) : atRest;
    pen.lineWidth = Math.max(0.5, widest * strength);
    pen.stroke(/** @type {Path2D & SvgPath} */ (path));
  }
  pen.globalAlpha = 1;
}

/**
 * Writes the titles of the sides and as many labels as fit, starting with those that
 * stand out.
 * @param {Pen} pen
 * @param {Geometry} geometry
 * @param {string[]} labels
 * @param {Look} look
 * @param {Record<Side, number[]>} standOut positions, the most important first
 */
export function drawLabels(pen, geometry, labels, look, standOut) {
  pen.clearRect(0, 0, geometry.width, geometry.height);
  drawTitles(pen, geometry, look);
  for (const side of /** @type {Side[]} */ (["query", "key"])) {
    const first = geometry.withRoom(standOut[side]);
    const others = geometry.withRoom(labels.keys(), first);
    pen.font = font(650, geometry.size, look.mono);
    pen.fillStyle = look.palette[side];
    for (const at of first) drawLabel(pen, geometry, { at, side }, labels[at]);
    pen.font = font(400, geometry.size, look.mono);
    pen.fillStyle = look.palette.ink;
    for (const at of others) drawLabel(pen, geometry, { at, side }, labels[at]);
  }
}

/** @param {Pen} pen @param {Geometry} geometry @param {Look} look */
function drawTitles(pen, { vertical, narrow, size, start, height, ends }, { palette, sans }) {
  const [query, key] = narrow ? ["from", "to"] : ["looks from", "looks at"];
  pen.fillStyle = palette.muted;
  pen.font = `${size - 1}px ${sans}`;
  pen.textAlign = vertical ? "right" : "left";
  pen.fillText(query, vertical ? ends.query - LABEL_DISTANCE : start, size);
  pen.textAlign = "left";
  pen.fillText(key, vertical ? ends.key + LABEL_DISTANCE : start, vertical ? size : height - 6);
}

/** @param {Pen} pen @param {Geometry} geometry @param {End} end @param {string} label */
function drawLabel(pen, geometry, { at, side }, label) {
  const { vertical, turned, size } = geometry;
  const isQuery = side === "query";
  pen.save();
  pen.textBaseline = "middle";
  pen.translate(...geometry.point(geometry.along(at), geometry.ends[side]));
  if (turned) pen.rotate(-Math.PI / 2);
  if (vertical || turned) {
    const before = isQuery !== turned; // where the line's end is to the right of the label
    pen.textAlign = before ? "right" : "left";
    pen.fillText(label, before ? -LABEL_DISTANCE : LABEL_DISTANCE, 0);
  } else {
    pen.textAlign = "center";
    pen.fillText(label, 0, (isQuery ? -1 : 1) * (size / 2 + 4));
  }
  pen.restore();
}

/** @param {number} weight @param {number} size @param {string} family */
function font(weight, size, family) {
  return `${weight} ${size}px ${family}`;
}
