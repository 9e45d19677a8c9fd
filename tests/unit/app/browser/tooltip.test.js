import assert from "node:assert/strict";
import { test } from "node:test";

import { pooledNote } from "#app/browser/tooltip.js";

test("a pooled cell says of what it is the largest", () => {
  assert.equal(pooledNote(1, "share"), "");
  assert.equal(pooledNote(4), ", the largest in a 4 × 4 block");
  assert.equal(pooledNote(4, "sqrt"), ", the largest in a 4 × 4 block");
  assert.equal(pooledNote(4, "share"), ", the largest relative to uniform in a 4 × 4 block");
});
