import assert from "node:assert/strict";
import { test } from "node:test";

import { LAST } from "#app/pages/shapes/journey/motion.js";
import { REST, Transport } from "#app/pages/shapes/journey/transport.js";

const at = ({ step, frame, playing }) => [step, frame, playing];

/** A transport of three steps after `act`, and after so many ticks. */
function after(act, ticks = 0, step = 0) {
  const transport = new Transport(3);
  transport.show(step);
  act(transport);
  for (let i = 0; i < ticks; i++) transport.tick();
  return transport;
}

test("next plays one step from its first frame to its last", () => {
  assert.deepEqual(at(after((t) => t.next())), [1, 0, "step"]);
  assert.deepEqual(at(after((t) => t.next(), 5)), [1, 5, "step"]);
  assert.deepEqual(at(after((t) => t.next(), 40)), [1, LAST, ""]);
});

test("next within a step goes to its end, and at the last end nowhere", () => {
  assert.deepEqual(at(after((t) => { t.seek(16); t.next(); })), [1, LAST, ""]);
  assert.deepEqual(at(after((t) => t.next(), 5, 2)), [2, LAST, ""]);
});

test("previous goes to the end of the step before, from the first to itself", () => {
  assert.deepEqual(at(after((t) => t.previous(), 0, 2)), [1, LAST, ""]);
  assert.deepEqual(at(after((t) => t.previous())), [0, LAST, ""]);
});

test("play shows every frame of the steps that follow, rests at the end of each, and stops", () => {
  const transport = after((t) => t.toggle()), seen = [];
  while (transport.playing) {
    seen.push(transport.place);
    transport.tick();
  }
  const expected = [...Array(24).keys()].map((i) => i + 12);
  assert.deepEqual([...new Set([...seen, transport.place])], expected);
  assert.equal(seen.filter((place) => place === 23).length, REST);
  assert.deepEqual(at(transport), [2, LAST, ""]);
});

test("a pause stays on its frame, and play goes on from there", () => {
  const transport = after((t) => t.toggle(), 4);
  transport.toggle();
  transport.tick();
  assert.deepEqual(at(transport), [1, 4, ""]);
  transport.toggle();
  transport.tick();
  assert.deepEqual(at(transport), [1, 5, "all"]);
});

test("play after the last step begins with the first", () => {
  assert.deepEqual(at(after((t) => t.toggle(), 0, 2)), [0, 0, "all"]);
});

test("without motion there are only last frames", () => {
  const still = (t) => { t.still = true; };
  assert.deepEqual(at(after((t) => { still(t); t.next(); })), [1, LAST, ""]);
  assert.deepEqual(at(after((t) => { still(t); t.seek(14); })), [1, LAST, ""]);
  assert.deepEqual(at(after((t) => { still(t); t.toggle(); })), [1, LAST, "all"]);
});
