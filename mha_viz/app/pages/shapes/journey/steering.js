// @ts-check
// Tells the journey which step the server has selected; it draws nothing.

import { component } from "../../../browser/component.js";
import { deliver } from "../../../browser/parcel.js";

/** @typedef {{ step: number, ack: number }} Data */

export default component((_, __, /** @type {Data} */ first) => {
  deliver("journey", first);
  return { update: (data) => deliver("journey", data), destroy() {} };
});
