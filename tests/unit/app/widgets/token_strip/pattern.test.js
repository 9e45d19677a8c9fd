import assert from "node:assert/strict";
import { test } from "node:test";

import { Pattern } from "#app/widgets/token_strip/pattern.js";
import { pack12 } from "#support/pack12.js";

const ROWS = [[1], [0.9, 0.1], [0.5, 0.3, 0.2], [0.01, 0.7, 0.01, 0.28]];
const pattern = Pattern.exact(pack12(ROWS.flat()), ROWS.length);
const near = (found, expected) => assert.ok(Math.abs(found - expected) < 1 / 4000, `${found} ${expected}`);

test("a weight is that of query and key, and 0 for a key after the query", () => {
  near(pattern.weight(2, 1), 0.3);
  near(pattern.weight(3, 3), 0.28);
  assert.equal(pattern.weight(0, 2), 0);
});

test("the strongest come first, and the weakest are left out", () => {
  assert.deepEqual(pattern.strongestKeys(3, 3).map(([key]) => key), [1, 3]);
  assert.deepEqual(pattern.strongestKeys(2, 2).map(([key]) => key), [0, 1]);
  assert.deepEqual(pattern.strongestQueries(0, 3).map(([query]) => query), [1, 2]);
  assert.deepEqual(pattern.strongestQueries(3, 3), []);
});

test("relative to uniform attention, a pooled cell stands for the largest ratio in its block", () => {
  const at = ({ query, key }) => [query, key];
  assert.deepEqual(at(pattern.strongestInBlock(0, 0, 2, "share")), [1, 0]); // 2 × 0.9 against 1 × 1
  assert.deepEqual(at(pattern.strongestInBlock(0, 0, 4, "share")), [3, 1]); // 4 × 0.7
  assert.deepEqual(at(pattern.strongestInBlock(0, 0, 4, "weight")), [0, 0]);
  assert.deepEqual(at(pattern.strongestInBlock(1, 3, 1, "share")), [1, 1]);
});

test("a pooled cell stands for the largest weight in its block", () => {
  const at = ({ query, key }) => [query, key];
  assert.deepEqual(at(pattern.strongestInBlock(2, 1, 1, "sqrt")), [2, 1]);
  assert.deepEqual(at(pattern.strongestInBlock(2, 0, 2, "sqrt")), [3, 1]);
  assert.deepEqual(at(pattern.strongestInBlock(2, 2, 4, "sqrt")), [3, 3]); // the text ends inside the block
  assert.deepEqual(at(pattern.strongestInBlock(0, 0, 4, "sqrt")), [0, 0]);
  assert.deepEqual(at(pattern.strongestInBlock(1, 3, 1, "sqrt")), [1, 1]); // masked: its query's own token
});
