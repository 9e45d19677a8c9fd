import assert from "node:assert/strict";
import { test } from "node:test";

import { shorten } from "#app/browser/token_label.js";

test("a label that is too long loses its middle", () => {
  assert.equal(shorten("princess", 8), "princess");
  assert.equal(shorten("princesses", 8), "prin…ses");
  assert.equal([...shorten("abcdefghijklmnopqrstuvwxyz", 16)].length, 16);
});

test("a character outside of the basic plane counts as one and is not torn", () => {
  assert.equal(shorten("🐈🐈🐈🐈🐈", 5), "🐈🐈🐈🐈🐈");
  assert.equal(shorten("🐈🐈🐈🐈🐈🐈", 5), "🐈🐈…🐈🐈");
});
