import assert from "node:assert/strict";
import { test } from "node:test";

import { firstPair, tokensOf } from "#app/pages/head/cells.js";

test("a cell is a pair of tokens, a pooled one a block that begins with a pair", () => {
  assert.deepEqual(firstPair({ x: 3, y: 8 }, 1), { query: 8, key: 3 });
  assert.deepEqual(firstPair({ x: 5.5, y: 9.5 }, 4), { query: 8, key: 4 });
});

test("a tooltip names a token, or the first and the last of a block", () => {
  const tokens = ["The", "·cat", "·sat", "·on", "·it"];
  assert.equal(tokensOf(1, 1, tokens), "·cat (1)");
  assert.equal(tokensOf(0, 2, tokens), "The (0) … ·cat (1)");
  assert.equal(tokensOf(4, 4, tokens), "·it (4) … ·it (4)");
});
