import assert from "node:assert/strict";
import { test } from "node:test";

import { Pattern } from "#app/widgets/token_strip/pattern.js";
import { lookedAtBy, looksAt } from "#app/widgets/token_strip/sentence.js";
import { pack12 } from "#support/pack12.js";

const positions = ({ named }) => named.map(([position]) => position);

test("each half names at most three tokens, the strongest first", () => {
  const rows = [[1], [0.5, 0.5], [0.4, 0.4, 0.2], [0.1, 0.2, 0.3, 0.4], [0.3, 0, 0, 0.1, 0.6]];
  const pattern = Pattern.exact(pack12(rows.flat()), rows.length);
  assert.deepEqual(positions(looksAt(3, pattern)), [3, 2, 1]);
  assert.deepEqual(positions(looksAt(4, pattern)), [4, 0, 3]);
  assert.deepEqual(positions(lookedAtBy(0, pattern)), [1, 2, 4]);
});

test("where no token is named, the sentence says why", () => {
  const length = 80;
  const rows = Array.from({ length }, (_, i) => Array(i + 1).fill(1 / (i + 1)));
  const pattern = Pattern.exact(pack12(rows.flat()), length);
  assert.deepEqual(looksAt(79, pattern), { named: [], nothing: "many tokens, none above 0.02" });
  assert.deepEqual(lookedAtBy(60, pattern), { named: [], nothing: "no token above 0.02" });
});
