import assert from "node:assert/strict";
import { test } from "node:test";

import { at, eased, LAST, shareOf } from "#app/pages/shapes/journey/motion.js";

const MOVES = [[0, 0, 10, 10], [100, 50, 20, 10], 4, 9, 1, 0.5, 12];

test("a motion eases in and out, and is half done when half of its time has passed", () => {
  assert.deepEqual([-1, 0, 0.5, 1, 2].map(eased), [0, 0, 0.5, 1, 1]);
  assert.ok(eased(0.1) < 0.1 && eased(0.9) > 0.9);
});

test("until its first frame an item is at its start, from its last one on at its end", () => {
  for (const frame of [-1, 0, 3]) assert.deepEqual(at(MOVES, frame), { rect: MOVES[0], opacity: 1 });
  for (const frame of [9, LAST]) assert.deepEqual(at(MOVES, frame), { rect: MOVES[1], opacity: 0.5 });
});

test("on its way it moves straight, and never back", () => {
  const shares = [4, 5, 6, 7, 8, 9].map((frame) => shareOf(MOVES, frame));
  assert.deepEqual(shares, [...shares].sort((a, b) => a - b));
  for (const frame of [4, 5, 6, 7]) {
    const [x, y] = at(MOVES, frame).rect;
    assert.ok(Math.abs(y - x / 2) < 1e-9);
  }
});

test("what appears at once is not there before its frame", () => {
  const appears = [[0, 0, 1, 1], [0, 0, 1, 1], 6, 6, 0, 1, 12];
  assert.deepEqual([5, 6].map((frame) => at(appears, frame).opacity), [0, 1]);
});

test("what is there until a frame is gone in it", () => {
  const leaves = [[0, 0, 1, 1], [0, 0, 1, 1], 0, 2, 1, 1, 8];
  assert.deepEqual([-1, 7, 8, LAST].map((frame) => at(leaves, frame).opacity), [1, 1, 0, 0]);
});
