// @ts-check
// Numbers that Python packs into base64, so that the data of a long text stays small in transit.

/** @param {string} base64 */
function bytesOf(base64) {
  return Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
}

/**
 * 12-bit numbers, two in three bytes; an odd count is padded with a 0.
 * @param {string} base64
 */
export function unpack12(base64) {
  const bytes = bytesOf(base64);
  const numbers = new Uint16Array((bytes.length / 3) * 2);
  for (let from = 0, to = 0; from < bytes.length; from += 3, to += 2) {
    numbers[to] = bytes[from] | ((bytes[from + 1] & 15) << 8);
    numbers[to + 1] = (bytes[from + 1] >> 4) | (bytes[from + 2] << 4);
  }
  return numbers;
}

/**
 * 16-bit numbers, little-endian, like every machine that runs a browser.
 * @param {string} base64
 */
export function unpack16(base64) {
  return new Uint16Array(bytesOf(base64).buffer);
}
