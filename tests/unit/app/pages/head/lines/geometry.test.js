import assert from "node:assert/strict";
import { test } from "node:test";

import { Geometry } from "#app/pages/head/lines/geometry.js";

const down = (given) => new Geometry({ width: 600, length: 17, size: 14, longest: 80, vertical: true, ...given });
const across = (given) => down({ vertical: false, ...given });

test("down the page, tokens have lines of text and share a largest height", () => {
  const short = down();
  assert.equal(short.pitch, 21);
  assert.equal(short.height, 24 + 17 * 21 + 4);
  assert.equal(down({ length: 320 }).pitch, 3);
  assert.equal(down({ length: 1024 }).pitch, 1);
  assert.ok(short.ends.query < short.ends.key);
  assert.equal(short.ends.key, 600 - short.ends.query);
});

test("across the page, labels that are longer than their place are turned", () => {
  assert.ok(across().turned);
  assert.ok(!across({ length: 4 }).turned);
  assert.ok(!down({ length: 1024 }).turned);
  const { start, pitch } = across();
  assert.equal(start + 17 * pitch, 600 - 14);
});

for (const [name, geometry] of Object.entries({ down: down(), across: across() })) {
  test(`${name}: the point of a token is found again, on the side that is nearer`, () => {
    for (const side of ["query", "key"]) {
      for (const at of [0, 9, 16]) {
        const point = geometry.point(geometry.along(at), geometry.ends[side]);
        assert.deepEqual(geometry.endAt(...point), { at, side });
      }
    }
    assert.equal(geometry.endAt(...geometry.point(geometry.along(-1), 10)), null);
    assert.equal(geometry.endAt(...geometry.point(geometry.along(17), 10)), null);
  });
}

test("several heads have lanes around the middle, inside of their token", () => {
  const geometry = down({ length: 320 });
  const lanes = [0, 1, 2, 3].map((i) => geometry.lane(i, 4));
  assert.ok(Math.abs(lanes.reduce((a, b) => a + b)) < 1e-9);
  assert.ok(lanes[3] - lanes[0] < geometry.pitch);
  assert.equal(geometry.lane(0, 1), 0);
});

test("labels that find no room are left out, the later of the list first", () => {
  const geometry = down({ length: 320 }); // five tokens to a line of text
  const placed = geometry.withRoom([100, 101, 104, 105, 90]);
  assert.deepEqual(placed, [100, 105, 90]);
  const others = geometry.withRoom([...Array(320).keys()], placed);
  for (const at of others) assert.ok(placed.every((other) => Math.abs(other - at) >= 5));
  assert.ok(others.length > 50);
});

test("where every label has room, those that are taken are not written twice", () => {
  const geometry = across({ length: 4 });
  assert.deepEqual(geometry.withRoom([0, 1, 2, 3], [2]), [0, 1, 3]);
});
