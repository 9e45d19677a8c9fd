import assert from "node:assert/strict";
import { test } from "node:test";

import { Outbox } from "#app/browser/outbox.js";

/** An outbox, and the list of what it has sent. */
function boxed(pace) {
  const sent = [];
  return { sent, outbox: new Outbox((state, choice) => sent.push([state, choice]), "focus", pace) };
}

/** A clock that stands still until `pass`, which runs what was due by then. */
function stoppedClock(t) {
  let now = 1000, waiting = null;
  t.mock.method(performance, "now", () => now);
  t.mock.method(globalThis, "setTimeout", (call, ms) => (waiting = { call, at: now + ms }));
  t.mock.method(globalThis, "clearTimeout", () => (waiting = null));
  return (ms) => {
    now += ms;
    if (!waiting || waiting.at > now) return;
    waiting.call();
    waiting = null;
  };
}

test("choices are numbered under the name of their state", () => {
  const { sent, outbox } = boxed();
  outbox.send({ token: 3 });
  outbox.send({ token: 4 });
  assert.deepEqual(sent, [["focus", { token: 3, seq: 1 }], ["focus", { token: 4, seq: 2 }]]);
});

test("a late answer is not up to date, and Python may be ahead", () => {
  const { sent, outbox } = boxed();
  assert.ok(outbox.upToDate(0));
  outbox.send({});
  outbox.send({});
  assert.ok(!outbox.upToDate(1));
  assert.ok(outbox.upToDate(2));
  assert.ok(outbox.upToDate(7));
  outbox.send({ token: 1 });
  assert.equal(sent.at(-1)[1].seq, 8);
});

test("choices that come fast wait, and the last one is always sent", (t) => {
  const pass = stoppedClock(t);
  const { sent, outbox } = boxed(80);
  const tokens = () => sent.map(([, { token }]) => token);
  outbox.send({ token: 1 });
  pass(30);
  outbox.send({ token: 2 });
  pass(30);
  outbox.send({ token: 3 });
  assert.deepEqual(tokens(), [1]);
  pass(20);
  assert.deepEqual(tokens(), [1, 3]);
  pass(79);
  outbox.send({ token: 4 });
  outbox.destroy();
  pass(200);
  assert.deepEqual(tokens(), [1, 3]);
});

test("choices that need no quick answer wait for the hand to rest, and the first is sent at once", (t) => {
  const pass = stoppedClock(t);
  const { sent, outbox } = boxed(80);
  for (let token = 1; token <= 20; token++) {
    outbox.send({ token }, 150);
    pass(33);
  }
  assert.deepEqual(sent.map(([, { token }]) => token), [1]);
  pass(150);
  assert.deepEqual(sent.map(([, { token }]) => token), [1, 20]);
});
