import assert from "node:assert/strict";
import { test } from "node:test";

import { headKey, headLabel, neighbour, parseHead } from "#app/browser/head_name.js";

test("a head has a label for people and a key for links, and both name it", () => {
  const head = { layer: 11, head: 3 };
  assert.equal(headLabel(head), "L11 H3");
  assert.equal(headKey(head), "L11H3");
  for (const text of ["L11 H3", "L11H3", " l11h3 "]) assert.deepEqual(parseHead(text), head);
});

test("a text that does not name a head is refused", () => {
  for (const text of ["", "L1", "H2", "L1H2H3", "L12345H0", "L-1H0", "11.3"]) {
    assert.throws(() => parseHead(text), /does not name a head/);
  }
});

test("arrow keys go to the neighbour, other keys nowhere", () => {
  const head = { layer: 2, head: 5 };
  assert.deepEqual(neighbour(head, "ArrowLeft"), { layer: 2, head: 4 });
  assert.deepEqual(neighbour(head, "ArrowRight"), { layer: 2, head: 6 });
  assert.deepEqual(neighbour(head, "ArrowUp"), { layer: 1, head: 5 });
  assert.deepEqual(neighbour(head, "ArrowDown"), { layer: 3, head: 5 });
  for (const key of ["Enter", "a", "toString"]) assert.equal(neighbour(head, key), null);
});
