import assert from "node:assert/strict";
import { test } from "node:test";

import { unpack12, unpack16 } from "#app/browser/packing.js";

test("12-bit numbers come two in three bytes", () => {
  const bytes = [0xbc, 0x3a, 0x12, 0xff, 0x0f, 0x00];
  const packed = Buffer.from(bytes).toString("base64");
  assert.deepEqual([...unpack12(packed)], [0xabc, 0x123, 0xfff, 0]);
  assert.deepEqual([...unpack12("")], []);
});

test("16-bit numbers come with the low byte first", () => {
  const packed = Buffer.from([0x01, 0x02, 0xff, 0xff]).toString("base64");
  assert.deepEqual([...unpack16(packed)], [0x0201, 0xffff]);
});
