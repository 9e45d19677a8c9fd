import assert from "node:assert/strict";
import { test } from "node:test";

import { cellColours } from "#app/widgets/token_strip/cell_colours.js";
import { Pattern } from "#app/widgets/token_strip/pattern.js";

globalThis.ImageData ??= class {
  constructor(width, height) {
    Object.assign(this, { width, height, data: new Uint8ClampedArray(4 * width * height) });
  }
};

const PALETTE = { sequential: ["#000000", "#FFFFFF"] };
const pattern = new Pattern([1, 0.75, 0.25, 0.5, 0.25, 0.25], 3);
const reds = ({ data }) => Array.from({ length: data.length / 4 }, (_, i) => (data[4 * i + 3] ? data[4 * i] : null));

test("a cell has the colour of its weight, and a masked one is transparent", () => {
  const cells = cellColours(pattern, null, "weight", PALETTE);
  assert.deepEqual([cells.width, cells.height], [3, 3]);
  assert.deepEqual(reds(cells), [255, null, null, 191, 64, null, 128, 64, 64]);
});

test("a window shows its own cells", () => {
  const cells = cellColours(pattern, [1, 3, 1, 3], "weight", PALETTE);
  assert.deepEqual([cells.width, cells.height], [2, 2]);
  assert.deepEqual(reds(cells), [64, null, 64, 64]);
});
