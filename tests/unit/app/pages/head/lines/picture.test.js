import assert from "node:assert/strict";
import { test } from "node:test";

import { HeadLines } from "#app/pages/head/lines/head_lines.js";
import { standOut } from "#app/pages/head/lines/picture.js";
import { packLines } from "#support/pack_lines.js";

const shown = (lines, index) => ({ lines: new HeadLines(packLines(lines, 1)), colour: "#000000", index });
const heads = [shown([[3, 1, 0.6], [3, 0, 0.2]], 0), shown([[3, 2, 0.7], [3, 0, 0.65]], 1)];

test("the highlighted token stands out, and its partners in any head, the strongest first", () => {
  assert.deepEqual(standOut({ at: 3, side: "query" }, heads), { query: [3], key: [2, 0, 1] });
  assert.deepEqual(standOut({ at: 0, side: "key" }, heads), { query: [3], key: [0] });
});

test("nothing stands out while no token is highlighted", () => {
  assert.deepEqual(standOut(null, heads), { query: [], key: [] });
});
