// The origin of a picture can be read again from its file.

import assert from "node:assert/strict";
import { test } from "node:test";

import { pngWithOrigin, svgWithOrigin, withOrigin } from "#app/browser/origin.js";

const PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
const CHECKSUM = 1936763546; // of the chunk below, by Python's zlib.crc32
const ORIGIN = '{"Model": "a <b> & \\u00e9"}';

test("a PNG has its origin in a tEXt chunk after its header, with the right checksum", async () => {
  const png = Buffer.from(PNG, "base64");
  const joined = Buffer.from(pngWithOrigin(png, ORIGIN));
  const length = joined.readUInt32BE(33);
  assert.equal(joined.toString("latin1", 37, 41), "tEXt");
  assert.equal(joined.toString("latin1", 41, 41 + length), `Provenance\0${ORIGIN}`);
  assert.equal(joined.readUInt32BE(41 + length), CHECKSUM);
  assert.deepEqual(joined.subarray(0, 33), png.subarray(0, 33));
  assert.deepEqual(joined.subarray(45 + length), png.subarray(33));
  const file = await withOrigin(new Blob([png]), "png", ORIGIN);
  assert.deepEqual(Buffer.from(await file.arrayBuffer()), joined);
});

test("an SVG has its origin as metadata, escaped", async () => {
  const svg = '<svg width="1"><g/></svg>';
  const expected = '<svg width="1"><metadata>{"Model": "a &lt;b&gt; &amp; \\u00e9"}</metadata><g/></svg>';
  assert.equal(svgWithOrigin(svg, ORIGIN), expected);
  assert.equal(await (await withOrigin(new Blob([svg]), "svg", ORIGIN)).text(), expected);
});
