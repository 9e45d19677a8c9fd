import assert from "node:assert/strict";
import { test } from "node:test";

import { weightText } from "#app/pages/head/lines/sentence.js";

test("a weight has two digits and is never rounded to nothing", () => {
  assert.equal(weightText(1), "1.00");
  assert.equal(weightText(0.834), "0.83");
  assert.equal(weightText(0.01), "0.01");
  assert.equal(weightText(0.004), "<0.01");
});
