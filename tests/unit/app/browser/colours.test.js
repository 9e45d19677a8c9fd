import assert from "node:assert/strict";
import { test } from "node:test";

import { colourAt, scalePosition, schemeOf } from "#app/browser/colours.js";

test("a colour lies between its neighbours, and at the ends beyond them", () => {
  const colours = ["#000000", "#FF0000", "#FFFFFF"];
  assert.equal(colourAt(colours, 0), "rgb(0,0,0)");
  assert.equal(colourAt(colours, 0.25), "rgb(128,0,0)");
  assert.equal(colourAt(colours, 0.5), "rgb(255,0,0)");
  assert.equal(colourAt(colours, 1), "rgb(255,255,255)");
  assert.equal(colourAt(colours, -1), "rgb(0,0,0)");
  assert.equal(colourAt(colours, 2), "rgb(255,255,255)");
});

test("a weight has its place on each scale", () => {
  assert.equal(scalePosition(0.25, "weight", 9), 0.25);
  assert.equal(scalePosition(0.25, "sqrt", 9), 0.5);
  assert.equal(scalePosition(1 / 10, "share", 9), 3 / 7); // uniform attention
  assert.equal(scalePosition(0, "share", 9), 0);
  assert.equal(scalePosition(1, "share", 1023), 1);
});

test("the background tells the scheme", () => {
  assert.equal(schemeOf("#FFFFFF"), "light");
  assert.equal(schemeOf("rgb(17, 20, 25)"), "dark");
  assert.equal(schemeOf("rgba(255, 255, 255, 1)"), "light");
  assert.equal(schemeOf(""), null);
});
