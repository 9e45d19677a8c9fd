import assert from "node:assert/strict";
import { test } from "node:test";

import { component } from "#app/browser/component.js";

test("a widget stays from run to run, and talks to the newest run", () => {
  const log = [];
  const render = component((parent, setState, data) => {
    log.push(["created", data]);
    return {
      update: (value) => {
        log.push(["update", value]);
        setState("focus", value);
      },
      destroy: () => log.push(["destroyed"]),
    };
  });
  const parentElement = {};
  const run = (data) => render({
    data, parentElement, setStateValue: (state, value) => log.push(["sent", data, state, value]),
  });
  run(1);
  const end = run(2);
  end();
  run(3);
  assert.deepEqual(log, [
    ["created", 1], ["update", 1], ["sent", 1, "focus", 1],
    ["update", 2], ["sent", 2, "focus", 2],
    ["destroyed"],
    ["created", 3], ["update", 3], ["sent", 3, "focus", 3],
  ]);
});

test("two places on the page have a widget each", () => {
  let created = 0;
  const render = component(() => ({ update() {}, destroy() {}, number: ++created }));
  for (const parentElement of [{}, {}]) render({ data: null, parentElement, setStateValue() {} });
  assert.equal(created, 2);
});
