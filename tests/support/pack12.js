// 12-bit numbers as token_strip's `pack` in Python sends them.

/** Weights from 0 to 1 as base64, two in three bytes. */
export function pack12(weights) {
  const numbers = weights.map((weight) => Math.floor(weight * 4000));
  if (numbers.length % 2) numbers.push(0);
  const bytes = [];
  for (let i = 0; i < numbers.length; i += 2) {
    const [first, second] = numbers.slice(i, i + 2);
    bytes.push(first & 255, (first >> 8) | ((second & 15) << 4), second >> 4);
  }
  return Buffer.from(bytes).toString("base64");
}
