import assert from "node:assert/strict";
import { test } from "node:test";

import { rangesOf, sameWindow, windowOf } from "#app/widgets/token_strip/zoom.js";

const windowAt = (x, y, length = 17) => windowOf({ range: x }, { range: y }, length);

test("a drag is widened or narrowed to whole tokens", () => {
  assert.deepEqual(windowAt([1.5, 11.5], [16.5, 3.5]), [4, 17, 2, 12]);
  assert.deepEqual(windowAt([1.7, 11.2], [16.1, 3.9]), [4, 17, 2, 12]);
  assert.deepEqual(windowAt([-4, 5.5], [16.5, -9]), [0, 17, 0, 6]);
});

test("a drag that leaves nothing out shows the whole pattern", () => {
  assert.equal(windowAt([-0.5, 16.5], [16.5, -0.5]), null);
  assert.equal(windowAt([-0.3, 16.3], [16.5, -0.5]), null);
});

test("the ranges of a window give the window again", () => {
  for (const window of [[4, 17, 2, 12], [0, 1, 0, 1], null]) {
    const ranges = rangesOf(window, 17);
    assert.deepEqual(windowAt(ranges["xaxis.range"], ranges["yaxis.range"]), window);
  }
});

test("windows are the same where their edges are", () => {
  assert.ok(sameWindow([1, 2, 3, 4], [1, 2, 3, 4]));
  assert.ok(sameWindow(null, null));
  assert.ok(!sameWindow([1, 2, 3, 4], [1, 2, 3, 5]));
  assert.ok(!sameWindow(null, [1, 2, 3, 4]));
});
