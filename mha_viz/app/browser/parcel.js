// @ts-check
// Data for another component. A component's data is sent anew when any of it changes; what changes
// often is therefore sent alone, as a parcel, and what is large stays as it is in the browser.

/** @typedef {Window & { mhaVizParcels?: Map<string, unknown> }} Page */

const EVENT = "mha-viz parcel";

function parcels() {
  const page = /** @type {Page} */ (window);
  return (page.mhaVizParcels ??= new Map());
}

/**
 * @param {string} name
 * @param {unknown} data
 */
export function deliver(name, data) {
  parcels().set(name, data);
  document.dispatchEvent(new CustomEvent(EVENT, { detail: name }));
}

/**
 * Calls back with what was delivered under a name, at once and at every delivery.
 * @param {string} name
 * @param {(data: any) => void} receive
 * @returns {() => void} ends it
 */
export function receive(name, receive) {
  const listener = (/** @type {Event} */ event) => {
    if (/** @type {CustomEvent} */ (event).detail === name) receive(parcels().get(name));
  };
  document.addEventListener(EVENT, listener);
  if (parcels().has(name)) receive(parcels().get(name));
  return () => document.removeEventListener(EVENT, listener);
}
