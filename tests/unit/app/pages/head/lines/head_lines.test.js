import assert from "node:assert/strict";
import { test } from "node:test";

import { HeadLines } from "#app/pages/head/lines/head_lines.js";
import { packLines } from "#support/pack_lines.js";

const head = new HeadLines(packLines([[3, 1, 0.9], [2, 1, 0.5], [3, 0, 0.25], [1, 1, 0.1]], 2));

test("at rest the strongest lines are drawn, and for a token all of its own", () => {
  assert.deepEqual([...head.of(null)], [0, 1]);
  assert.deepEqual([...head.of({ at: 3, side: "query" })], [0, 2]);
  assert.deepEqual([...head.of({ at: 1, side: "key" })], [0, 1, 3]);
  assert.deepEqual([...head.of({ at: 0, side: "query" })], []);
});

test("the partners of a token are at the other ends, the strongest first", () => {
  const found = head.partners({ at: 3, side: "query" });
  assert.deepEqual(found.map(([key, weight]) => [key, Math.round(weight * 100)]), [[1, 90], [0, 25]]);
  assert.deepEqual(head.partners({ at: 1, side: "key" }).map(([query]) => query), [3, 2, 1]);
});
