import assert from "node:assert/strict";
import { test } from "node:test";

import { following } from "#app/widgets/token_strip/wheel.js";

test("the wheel goes on in the next row, and stops at both ends", () => {
  assert.deepEqual(following({ layer: 0, head: 5 }, 1, 4, 6), { layer: 1, head: 0 });
  assert.deepEqual(following({ layer: 1, head: 0 }, -1, 4, 6), { layer: 0, head: 5 });
  assert.deepEqual(following({ layer: 0, head: 0 }, -1, 4, 6), { layer: 0, head: 0 });
  assert.deepEqual(following({ layer: 3, head: 5 }, 1, 4, 6), { layer: 3, head: 5 });
});
