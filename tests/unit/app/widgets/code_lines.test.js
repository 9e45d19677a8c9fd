import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";

import selectByLine from "#app/widgets/code_lines.js";

const listeners = {}, focused = [];
let clicked = [], marked = false, observed = null;

const button = (text) => ({ textContent: text, closest: () => ({ click: () => clicked.push(text) }) });
const line = (option) => ({ dataset: { control: "step", option }, focus: () => focused.push(option) });
const lines = [line("scores"), line("+ x")];
const body = {};

globalThis.window = {};
globalThis.getSelection = () => ({ isCollapsed: !marked });
globalThis.MutationObserver = class {
  constructor(look) { observed = look; }
  observe() {}
  disconnect() { observed = null; }
};
globalThis.document = {
  body,
  activeElement: body,
  addEventListener: (kind, listener) => { listeners[kind] ??= listener; },
  querySelectorAll: (selector) => (selector.includes("step") ? [button("view"), button("scores"), button("+ x")] : lines),
};

const on = (found, more = {}) => ({ composedPath: () => [{ closest: () => found }], preventDefault() { this.stopped = true; }, ...more });

beforeEach(() => {
  selectByLine();
  [clicked, marked] = [[], false];
});

test("a click on a line clicks the button of its option", () => {
  listeners.click(on(lines[1]));
  assert.deepEqual(clicked, ["+ x"]);
  listeners.click(on(null));
  assert.deepEqual(clicked, ["+ x"]);
});

test("who marks text selects no option", () => {
  marked = true;
  listeners.click(on(lines[0]));
  assert.deepEqual(clicked, []);
});

test("Enter and the space bar do the same, and the line keeps the keyboard", () => {
  for (const key of ["Enter", " "]) {
    const press = on(lines[0], { key });
    listeners.keydown(press);
    assert.ok(press.stopped);
    observed();
    assert.equal(observed, null);
  }
  listeners.keydown(on(lines[0], { key: "a" }));
  assert.deepEqual(clicked, ["scores", "scores"]);
  assert.deepEqual(focused, ["scores", "scores"]);
});
