// @ts-check
// Streamlit calls a component again in every run of the page. The widget that it draws persists
// across runs, and only its data changes.

/**
 * @template Data
 * @typedef {object} Widget
 * @property {(data: Data) => void} update
 * @property {() => void} destroy
 */

/** @typedef {(state: string, value: unknown) => void} SetState */

/**
 * What Streamlit passes in each run.
 * @template Data
 * @typedef {object} Run
 * @property {Data} data
 * @property {HTMLElement | ShadowRoot} parentElement
 * @property {SetState} setStateValue
 */

/**
 * The function that Streamlit's components v2 expect as a module's default export.
 * @template Data
 * @param {(parent: HTMLElement | ShadowRoot, setState: SetState, data: Data) => Widget<Data>} create
 */
export function component(create) {
  /** @type {WeakMap<Node, { widget: Widget<Data>, latest: { setState: SetState } }>} */
  const shown = new WeakMap();

  /** @param {Run<Data>} run */
  return ({ data, parentElement, setStateValue }) => {
    let entry = shown.get(parentElement);
    if (!entry) {
      const latest = { setState: setStateValue };
      const widget = create(parentElement, (state, value) => latest.setState(state, value), data);
      entry = { widget, latest };
      shown.set(parentElement, entry);
    }
    entry.latest.setState = setStateValue;
    entry.widget.update(data);
    const { widget } = entry;
    return () => {
      widget.destroy();
      shown.delete(parentElement);
    };
  };
}
