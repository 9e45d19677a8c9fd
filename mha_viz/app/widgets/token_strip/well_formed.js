// @ts-check
// Half of a surrogate pair cannot be sent to a server: the whole text would be lost. Every text area
// gets U+FFFD in its place, before Streamlit reads it.

import { isFirstCall } from "../../browser/once.js";

/** Watches the text areas of the page; further calls do nothing. */
export function keepTextWellFormed() {
  if (!("toWellFormed" in String.prototype) || !isFirstCall("keep text well formed")) return;
  // React replaces `value` on the element itself; only the prototype's setter makes it see a change.
  const setValue = Object.getOwnPropertyDescriptor(HTMLTextAreaElement.prototype, "value")?.set;
  document.addEventListener("input", ({ target }) => {
    if (target instanceof HTMLTextAreaElement && !target.value.isWellFormed()) {
      setValue?.call(target, target.value.toWellFormed());
    }
  }, true);
}
