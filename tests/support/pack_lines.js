// Lines as `pack` in mha_viz/app/pages/head/lines sends them.

/** A head's lines, [query, key, weight] with the strongest first, as HeadLines takes them. */
export function packLines(lines, atRest, name = "L0 H0") {
  const column = (i, scale = 1) => lines.map((line) => Math.floor(line[i] * scale));
  const numbers = Uint16Array.from([...column(0), ...column(1), ...column(2, 64_000)]);
  return { name, lines: Buffer.from(numbers.buffer).toString("base64"), at_rest: atRest };
}
