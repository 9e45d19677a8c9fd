// @ts-check
// The patterns of all heads of a text, as every_pattern.py packs them, for the token strip.

import { component } from "../../browser/component.js";
import { deliver } from "../../browser/parcel.js";

const KEY = 16; // bytes of the text's key

class EveryPattern {
  /** @param {Uint8Array} bytes */
  update(bytes) {
    deliver("every pattern", {
      trace_key: new TextDecoder().decode(bytes.subarray(0, KEY)),
      codes: bytes.subarray(KEY),
    });
  }

  destroy() {
    deliver("every pattern", null);
  }
}

export default component(() => new EveryPattern());
