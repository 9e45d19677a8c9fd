import assert from "node:assert/strict";
import { test } from "node:test";

import { destination } from "#app/widgets/token_strip/keys.js";

test("keys go from token to token, and stop at the ends", () => {
  assert.equal(destination("ArrowLeft", 3, 16), 2);
  assert.equal(destination("ArrowRight", 3, 16), 4);
  assert.equal(destination("ArrowLeft", 0, 16), 0);
  assert.equal(destination("ArrowRight", 16, 16), 16);
  assert.equal(destination("Home", 3, 16), 0);
  assert.equal(destination("End", 3, 16), 16);
  assert.equal(destination("ArrowUp", 3, 16), null);
  assert.equal(destination("Enter", 3, 16), null);
});
