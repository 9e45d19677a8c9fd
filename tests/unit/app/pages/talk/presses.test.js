import assert from "node:assert/strict";
import { test } from "node:test";

import { actionOf, clock, delay, pressesOf } from "#app/pages/talk/presses.js";

const key = (key, more = {}) => actionOf({ key, shiftKey: false, ctrlKey: false, altKey: false, metaKey: false, ...more });

test("a scene that asks takes two presses, and the title comes first", () => {
  assert.deepEqual(
    pressesOf([{ ask: [] }, { ask: ["a", "b"] }]).map(({ scene, asks }) => [scene, asks]),
    [[-1, false], [0, false], [1, true], [1, false]],
  );
});

test("a clicker, arrows and letters do what the notes say", () => {
  for (const next of ["PageDown", "ArrowRight", " "]) assert.equal(key(next), "next");
  for (const back of ["PageUp", "ArrowLeft"]) assert.equal(key(back), "back");
  assert.deepEqual(["E", "e", "n", "b", "7", "Escape", "Home", "End"].map((name) => key(name)),
    ["explore", "explore", "notes", "black", "scene", "leave", "first", "last"]);
  for (const other of ["x", "0", "Tab", "Enter", "constructor"]) assert.equal(key(other), "");
});

test("with Shift, arrows belong to the page, and with Ctrl all keys to the browser", () => {
  assert.equal(key("ArrowRight", { shiftKey: true }), "page");
  assert.equal(key("E", { shiftKey: true }), "");
  assert.equal(key("f", { ctrlKey: true }), "");
});

test("the delay counts from the end of a scene, and before its beginning the talk is early", () => {
  const plan = [1, 2];
  assert.equal(delay(50, plan, 0), "on time");
  assert.equal(delay(80, plan, 0), "20 s late");
  assert.equal(delay(30, plan, 1), "30 s early");
  assert.equal(delay(180 + 65, plan, 1), "1:05 late");
  assert.equal(clock(485.9), "8:05");
});
