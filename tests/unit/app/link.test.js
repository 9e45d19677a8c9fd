import assert from "node:assert/strict";
import { test } from "node:test";

import oneEntryPerPress from "#app/link.js";

/** A page with a history that notes what is written to it. */
function open(address) {
  const entries = [address], heard = {};
  globalThis.location = { href: address };
  const write = (push) => function (_state, _title, url) {
    if (push) entries.push(url);
    else entries[entries.length - 1] = url;
    globalThis.location.href = new URL(url, globalThis.location.href).href;
  };
  globalThis.history = { pushState: write(true), replaceState: write(false) };
  globalThis.window = { addEventListener: (kind, handler) => (heard[kind] = handler) };
  oneEntryPerPress();
  return { entries, fire: (kind, event = {}) => heard[kind](event) };
}

test("a press makes one entry, and what follows it belongs to that entry", () => {
  const { entries, fire } = open("http://app/");
  globalThis.history.replaceState(null, "", "http://app/?at=L0H0");
  assert.equal(entries.length, 1);
  fire("pointerdown");
  globalThis.history.replaceState(null, "", "http://app/?at=L0H1");
  globalThis.history.pushState(null, "", "http://app/?at=L0H1&token=3");
  assert.deepEqual(entries, ["http://app/?at=L0H0", "http://app/?at=L0H1&token=3"]);
});

test("a key that is held down is one press", () => {
  const { entries, fire } = open("http://app/");
  fire("keydown", { repeat: false });
  globalThis.history.replaceState(null, "", "http://app/?at=L0H1");
  fire("keydown", { repeat: true });
  globalThis.history.replaceState(null, "", "http://app/?at=L0H2");
  assert.deepEqual(entries, ["http://app/", "http://app/?at=L0H2"]);
});

test("what is written after Back makes no entry, nor does an address that stays", () => {
  const { entries, fire } = open("http://app/");
  fire("pointerdown");
  globalThis.history.pushState(null, "", "http://app/");
  assert.equal(entries.length, 1);
  fire("popstate");
  globalThis.history.replaceState(null, "", "http://app/?at=L0H1");
  assert.equal(entries.length, 1);
});

test("calling it again changes nothing", () => {
  open("http://app/");
  const { pushState } = globalThis.history;
  oneEntryPerPress();
  assert.equal(globalThis.history.pushState, pushState);
});
