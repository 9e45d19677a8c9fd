import assert from "node:assert/strict";
import { test } from "node:test";

import { endAfterKey, sameEnd } from "#app/pages/head/lines/keys.js";

const from = { at: 3, side: "query" };

test("down the page, up and down go along the text and left and right to a side", () => {
  const to = (key, start = from) => endAfterKey(key, start, 16, true);
  assert.deepEqual(to("ArrowUp"), { at: 2, side: "query" });
  assert.deepEqual(to("ArrowDown"), { at: 4, side: "query" });
  assert.deepEqual(to("ArrowRight"), { at: 3, side: "key" });
  assert.deepEqual(to("ArrowLeft", { at: 3, side: "key" }), from);
  assert.deepEqual(to("Home"), { at: 0, side: "query" });
  assert.deepEqual(to("End"), { at: 16, side: "query" });
  assert.deepEqual(to("ArrowDown", { at: 16, side: "key" }), { at: 16, side: "key" });
  assert.deepEqual(to("ArrowUp", { at: 0, side: "key" }), { at: 0, side: "key" });
  assert.equal(to("Enter"), null);
});

test("across the page it is the other way round", () => {
  assert.deepEqual(endAfterKey("ArrowRight", from, 16, false), { at: 4, side: "query" });
  assert.deepEqual(endAfterKey("ArrowDown", from, 16, false), { at: 3, side: "key" });
});

test("ends are the same where token and side are", () => {
  assert.ok(sameEnd(from, { ...from }));
  assert.ok(sameEnd(null, null));
  assert.ok(!sameEnd(from, { at: 3, side: "key" }));
  assert.ok(!sameEnd(from, null));
});
