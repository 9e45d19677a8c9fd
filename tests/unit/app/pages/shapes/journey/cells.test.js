import assert from "node:assert/strict";
import { test } from "node:test";

import { cellAt, paint } from "#app/pages/shapes/journey/cells.js";

/** Two rows of three cells, 30 pixels wide and 18 high with a gap of 2. */
function cells(rect = [10, 10, 30, 18], opacity = 1, more = {}) {
  const motion = [rect, rect, 0, 11, opacity, opacity, 12];
  return { kind: "cells", image: "q", crop: [6, 4, 3, 2], motion, gap: [2, 2], asks: true, ...more };
}

test("a pointer finds the row and the column of the image", () => {
  assert.deepEqual(cellAt([cells()], 11, 11, 11), { image: "q", row: 4, column: 6 });
  assert.deepEqual(cellAt([cells()], 11, 39, 27), { image: "q", row: 5, column: 8 });
  assert.equal(cellAt([cells()], 11, 41, 11), null);
});

test("what lies above is found, unless it is faint or does not ask", () => {
  const above = { image: "k" };
  const found = (...more) => cellAt([cells(), cells(undefined, ...more)], 11, 11, 11).image;
  assert.equal(found(1, above), "k");
  assert.equal(found(0.1, above), "q");
  assert.equal(found(1, { ...above, asks: false }), "q");
});

test("each row is painted in its place, and nothing that is transparent", () => {
  const drawn = [], context = { drawImage: (...all) => drawn.push(all.slice(1)), globalAlpha: 1 };
  paint(context, [cells(), cells(undefined, 0)], new Map([["q", {}]]), 11, 2);
  assert.deepEqual(drawn, [[6, 4, 3, 1, 20, 20, 60, 16], [6, 5, 3, 1, 20, 40, 60, 16]]);
});
