// The text as a strip of tokens, and the link between it, the grid of heads and the heatmap.
// Everything that a pointer previews happens here, without the server. What is chosen (a head, a
// token, a part of the heatmap) goes to Python as one state, "focus", with a sequence number;
// Python answers with the number it has seen, so that a late answer never takes back a newer choice.
// Token text enters the page through textContent alone.

const instances = new WeakMap();

// Half a surrogate pair cannot be sent to a server; without this the whole text would be lost.
const setValue = Object.getOwnPropertyDescriptor(HTMLTextAreaElement.prototype, "value").set;
if (!window.mhaVizWellFormed && "".toWellFormed) {
  window.mhaVizWellFormed = true;
  document.addEventListener("input", ({ target }) => {
    if (target instanceof HTMLTextAreaElement && !target.value.isWellFormed()) {
      setValue.call(target, target.value.toWellFormed());
    }
  }, true);
}

export default function ({ data, parentElement, setStateValue }) {
  let lens = instances.get(parentElement);
  if (!lens) {
    lens = new Lens(parentElement);
    instances.set(parentElement, lens);
  }
  lens.send = setStateValue;
  lens.update(data);
  return () => {
    lens.destroy();
    instances.delete(parentElement);
  };
}

const MAP = ".st-key-head_map .js-plotly-plot";
const GRID = ".st-key-head_grid .js-plotly-plot";
const SHOWN = 0.02; // weights below are not written on a chip
const PACE = 80; // milliseconds between two choices that are sent; the last one is never left out
const TWICE = 320; // milliseconds between the clicks of a double click
const NAMED = 3; // tokens named in each half of the sentence

class Lens {
  constructor(parent) {
    this.root = parent.querySelector(".lens");
    this.strip = this.root.querySelector(".strip");
    this.sentence = this.root.querySelector(".sentence");
    this.legend = this.root.querySelector(".legend");
    this.host = parent.host ?? parent;
    this.seq = 0;
    this.plots = new Map();
    this.onKey = (event) => this.key(event);
    window.addEventListener("keydown", this.onKey);
    this.observer = new MutationObserver(() => this.attach());
    this.observer.observe(document.body, { childList: true, subtree: true });
    this.strip.onpointerover = (event) => this.preview(this.position(event.target));
    this.strip.onpointerleave = () => this.preview(null);
    this.strip.onclick = (event) => this.pin(this.position(event.target));
    this.strip.addEventListener("focusin", (event) => this.preview(this.position(event.target)));
    this.strip.addEventListener("focusout", () => this.preview(null));
  }

  destroy() {
    window.removeEventListener("keydown", this.onKey);
    this.observer.disconnect();
    cancelAnimationFrame(this.pending);
    clearTimeout(this.later);
    clearTimeout(this.sending);
    for (const plot of this.plots.values()) plot.remove();
  }

  update(data) {
    const same = this.data && this.data.words === data.words;
    const first = this.seq === 0 && !this.data;
    this.data = data;
    if (first || data.ack >= this.seq) {
      this.seq = Math.max(this.seq, data.ack);
      this.at = data.at;
      this.pinned = data.token;
      this.window = data.window;
    }
    this.tokens = data.tokens;
    this.weights = unpack(data.pattern);
    this.theme();
    if (!same) this.build();
    this.hovered = null;
    this.attach();
    this.paint();
  }

  // ---- colours: the browser knows the scheme first; Python is told when it drew in another ----

  theme() {
    const page = getComputedStyle(this.host).getPropertyValue("--st-background-color").trim();
    const name = page && luminance(page) < 0.5 ? "dark" : "light";
    this.palette = this.data.palettes[name];
    for (const [key, value] of Object.entries(this.palette)) {
      if (typeof value === "string") this.root.style.setProperty("--" + key.replaceAll("_", "-"), value);
    }
    this.root.classList.toggle("stage", this.data.stage);
    if (page && name !== this.data.theme && this.told !== name) {
      this.told = name;
      this.choose({ theme: name });
    } else if (name === this.data.theme) {
      this.told = null;
    }
  }

  colour(position) {
    const stops = this.palette.sequential;
    const x = Math.min(Math.max(position, 0), 1) * (stops.length - 1);
    const i = Math.min(Math.floor(x), stops.length - 2);
    const a = rgb(stops[i]), b = rgb(stops[i + 1]);
    return `rgb(${a.map((value, c) => Math.round(value + (b[c] - value) * (x - i))).join(",")})`;
  }

  place(weight, query) {
    if (this.data.scale === "weight") return weight;
    if (this.data.scale === "sqrt") return Math.sqrt(weight);
    const octaves = Math.log2(Math.max(weight * (query + 1), 1 / 8));
    return (Math.min(octaves, 4) + 3) / 7;
  }

  // ---- the strip ----

  build() {
    const chips = this.tokens.map(([label, kind, note, first, end], i) => {
      const chip = element("div", "chip " + kind);
      chip.classList.toggle("joined", end > first && i > first);
      chip.classList.toggle("joins", end > first && i < end - 1);
      chip.setAttribute("role", "option");
      chip.dataset.position = i;
      chip.tabIndex = -1;
      chip.title = `${label}  position ${i}${note ? "\n" + note : ""}`;
      const word = element("span", "word");
      write(word, shorten(label, 16));
      chip.append(word, element("span", "number"), element("span", "under"));
      return chip;
    });
    this.strip.replaceChildren(...chips);
    this.chips = chips;
    this.legend.replaceChildren();
    for (const [mark, meaning] of Object.entries(this.data.legend)) {
      const b = element("b", "", mark);
      this.legend.append(b, ` ${meaning}   `);
    }
  }

  position(node) {
    const chip = node.closest?.(".chip");
    return chip ? Number(chip.dataset.position) : null;
  }

  weight(query, key) {
    return key > query ? 0 : this.weights[(query * (query + 1)) / 2 + key] / 4095;
  }

  preview(position) {
    if (position === this.hovered) return;
    this.hovered = position;
    this.paint();
  }

  pin(position) {
    if (position === null || position === this.pinned) return;
    this.pinned = position;
    this.paint();
    this.choose({ token: position });
  }

  paint() {
    const query = Math.min(this.hovered ?? this.pinned, this.tokens.length - 1);
    this.chips.forEach((chip, i) => {
      const looks = i <= query ? this.weight(query, i) : 0;
      const looked = i > query ? this.weight(i, query) : 0;
      const [, number, under] = chip.children;
      chip.classList.toggle("asks", i === query);
      chip.setAttribute("aria-selected", String(i === query));
      chip.tabIndex = i === query ? 0 : -1;
      const filled = i < query && looks >= SHOWN;
      const place = this.place(looks, query);
      chip.style.background = filled ? this.colour(place) : "";
      chip.style.color = filled && place >= this.palette.ink_flips_at ? this.palette.ink_on_strong : "";
      const weight = i <= query ? looks : looked;
      number.textContent = weight >= SHOWN ? short(weight) : "";
      under.style.height = looked >= SHOWN ? `${Math.max(2, 7 * Math.sqrt(looked))}px` : "0";
    });
    this.keep(query);
    this.say(query);
    this.frame();
  }

  keep(query) {
    const chip = this.chips[query];
    if (this.hovered !== null || !chip || this.tokens.length < 20) return;
    if (this.strip.scrollHeight <= this.strip.clientHeight) return;
    const top = chip.offsetTop - this.strip.clientHeight / 2;
    if (Math.abs(this.strip.scrollTop - top) > this.strip.clientHeight / 2) this.strip.scrollTop = top;
  }

  say(query) {
    const T = this.tokens.length;
    const looks = strongest(query + 1, (key) => this.weight(query, key));
    const looked = strongest(T - query - 1, (n) => this.weight(query + 1 + n, query));
    const asks = element("span", "part");
    const square = element("span", "square");
    square.style.background = this.palette.accent;
    asks.append(square, " ", this.named(query, true), bold(" looks at "));
    for (const [key, weight] of looks) asks.append(this.pair(key, weight));
    if (!looks.length) asks.append(" every token a little, none above 0.02");
    const read = element("span", "part keys");
    const blue = element("span", "square");
    blue.style.background = this.palette.key;
    read.append(blue, " ", bold("looked at by "));
    for (const [n, weight] of looked) read.append(this.pair(query + 1 + n, weight));
    if (!looked.length) read.append(query === T - 1 ? "nobody: it is the last token" : "nobody above 0.02");
    this.sentence.replaceChildren(asks, read);
  }

  named(position, strong) {
    const token = element(strong ? "b" : "span", "token");
    write(token, shorten(this.tokens[position][0], 16));
    token.append(element("sub", "", String(position)));
    return token;
  }

  pair(position, weight) {
    const pair = element("span", "pair");
    pair.append(this.named(position, false), " " + long(weight));
    return pair;
  }

  // ---- the figures ----

  attach() {
    for (const [name, selector] of [["map", MAP], ["grid", GRID]]) {
      const plot = this.plots.get(name);
      const found = document.querySelector(selector);
      if (plot && plot.gd === found && plot.overlay.isConnected) continue;
      plot?.remove();
      this.plots.delete(name);
      if (found?.on && found._fullLayout?.xaxis) this.plots.set(name, this.connect(name, found));
      else if (found) requestAnimationFrame(() => this.attach());
    }
  }

  connect(name, gd) {
    const overlay = layer(gd);
    const handlers = name === "map" ? this.mapHandlers(gd) : this.gridHandlers();
    const still = finger(gd);
    handlers.plotly_afterplot = () => {
      if (name === "map") still.calm();
      const plot = this.plots.get(name);
      if (plot) plot.thinned = false;
      this.frame();
    };
    const click = handlers.plotly_click;
    handlers.plotly_click = (event) => still.tapped() && click(event);
    for (const [event, handler] of Object.entries(handlers)) gd.on(event, handler);
    const remove = () => {
      for (const [event, handler] of Object.entries(handlers)) gd.removeListener?.(event, handler);
      overlay.remove();
      hideTip();
    };
    const plot = { gd, overlay, remove };
    this.frame();
    if (name === "map") still.calm();
    return plot;
  }

  gridHandlers() {
    return {
      plotly_click: ({ points }) => {
        const [layer, head] = points[0].customdata;
        this.head(layer, head);
      },
    };
  }

  mapHandlers(gd) {
    return {
      plotly_hover: ({ points, event }) => {
        const { query, key } = this.cell(points[0]);
        gd.querySelector(".hoverlayer")?.style.setProperty("display", "none");
        this.tooltip(query, key, event);
        this.preview(query);
        this.cellKey = key;
      },
      plotly_unhover: () => {
        hideTip();
        this.preview(null);
      },
      plotly_click: ({ points }) => {
        const { query } = this.cell(points[0]);
        clearTimeout(this.later);
        if (performance.now() - this.doubled < TWICE) return; // its second click, told after it
        if (!this.window) this.pin(query);
        else this.later = setTimeout(() => this.pin(query), TWICE); // two clicks end the zoom
      },
      plotly_doubleclick: () => {
        if (!this.window) return; // two presses, one soon after the other
        clearTimeout(this.later);
        this.doubled = performance.now();
        this.zoom(null);
      },
      plotly_relayout: (change) => {
        if ("xaxis.range[0]" in change || "yaxis.range[0]" in change) this.zoomed(gd);
      },
    };
  }

  // The cell under the pointer; of a pooled one, the token pair with the largest weight.
  cell({ x, y }) {
    const half = (this.data.block - 1) / 2;
    const q0 = Math.round(y - half), k0 = Math.round(x - half);
    let best = { query: q0, key: Math.min(k0, q0), weight: -1 };
    for (let q = q0; q < Math.min(q0 + this.data.block, this.tokens.length); q++) {
      for (let k = k0; k < Math.min(k0 + this.data.block, q + 1); k++) {
        const weight = this.weight(q, k);
        if (weight > best.weight) best = { query: q, key: k, weight };
      }
    }
    return best;
  }

  tooltip(query, key, event) {
    const { block } = this.data;
    const most = block > 1 ? ` the largest of ${block} × ${block}` : "";
    showTip([
      ["from ", isolated(this.tokens[query][0]), ` (${query})`],
      ["to   ", isolated(this.tokens[key][0]), ` (${key})`],
      [bold(`${this.weight(query, key).toFixed(3)}${most}`)],
    ], event, this.palette);
  }

  // A part is whole tokens; a drag that leaves out none, or no more than before, is taken back.
  zoomed(gd) {
    const T = this.tokens.length;
    const whole = [0, T, 0, T];
    const part = this.ranges(gd);
    const window = String(part) === String(whole) ? null : part;
    if (String(window) !== String(this.window)) return this.zoom(window);
    const [q0, q1, k0, k1] = window ?? whole;
    globalThis.Plotly.relayout(gd, { "xaxis.range": [k0 - 0.5, k1 - 0.5], "yaxis.range": [q1 - 0.5, q0 - 0.5] });
  }

  ranges(gd) {
    const { xaxis, yaxis } = gd._fullLayout;
    const edges = (axis) => {
      const [low, high] = [...axis.range].sort((a, b) => a - b);
      return [Math.max(0, Math.round(low + 0.5)), Math.min(this.tokens.length, Math.round(high + 0.5))];
    };
    return [...edges(yaxis), ...edges(xaxis)];
  }

  zoom(window) {
    if (String(window) === String(this.window)) return;
    this.window = window;
    this.choose({ window });
  }

  // However many things change between two pictures on the screen, the marks are drawn once.
  frame() {
    this.pending ??= requestAnimationFrame(() => {
      this.pending = null;
      this.marks();
    });
  }

  // Rings and boxes over the figures, in the figures' own coordinates.
  marks() {
    const grid = this.plots.get("grid"), map = this.plots.get("map");
    const [layer, head] = (this.at.match(/\d+/g) ?? [0, 0]).map(Number);
    const { query: orange, key: blue, page } = this.palette;
    if (grid) {
      const ring = box(grid.gd, head - 0.5, head + 0.5, layer - 0.5, layer + 0.5);
      if (ring) ring.style.cssText += `border:2.5px solid ${orange};box-shadow:0 0 0 1px ${page}, inset 0 0 0 1px ${page}`;
      grid.overlay.replaceChildren(...(ring ? [ring] : []));
    }
    if (!map?.gd._fullLayout?.xaxis) return; // taken away between two pictures
    const query = Math.min(this.hovered ?? this.pinned, this.tokens.length - 1);
    const last = this.tokens.length - 0.5;
    const row = box(map.gd, -0.5, query + 0.5, query - 0.5, query + 0.5);
    const column = query + 0.5 < last ? box(map.gd, query - 0.5, query + 0.5, query + 0.5, last) : null;
    const marks = [];
    if (column) {
      column.style.cssText += `border:2px dotted ${blue}`;
      marks.push(column);
    }
    if (row) {
      row.style.cssText += `border:2px solid ${orange};box-shadow:0 0 0 1px ${page}`;
      marks.push(row, this.rowLabel(row, map.gd, query));
    }
    map.overlay.replaceChildren(...marks);
    if (!map.thinned) thin(map.gd.querySelectorAll(".cbaxis text"));
    map.thinned = true;
    this.labels(map.gd, ".ytick text", "yaxis", query, orange);
    this.labels(map.gd, ".xtick text", "xaxis", query, blue);
  }

  // The chosen token's label stands out; a label that would touch its neighbour is left out.
  labels(gd, selector, axis, query, colour) {
    const { l2p, tickfont } = gd._fullLayout[axis];
    const ticks = [...gd.querySelectorAll(selector)].filter((tick) => tick.__data__);
    const place = (tick) => l2p(tick.__data__.x);
    const chosen = ticks.find((tick) => tick.__data__.x === query);
    let last = -Infinity;
    for (const tick of ticks.sort((a, b) => place(a) - place(b))) {
      const own = tick === chosen;
      const near = chosen && !own && Math.abs(place(tick) - place(chosen)) < tickfont.size;
      const shown = own || (!near && place(tick) - last >= tickfont.size);
      if (shown) last = place(tick);
      tick.style.visibility = shown ? "" : "hidden";
      tick.style.fontWeight = own ? "700" : "";
      tick.style.fill = own ? colour : this.palette.ink;
    }
  }

  rowLabel(row, gd, query) {
    const label = element("div", "");
    const right = parseFloat(row.style.left) + parseFloat(row.style.width);
    const size = gd._fullLayout._size;
    const room = size.l + size.w - right;
    label.style.cssText = `position:absolute;white-space:nowrap;color:${this.palette.query};
      font:${this.data.stage ? 16 : 13}px var(--st-font, "Source Sans"),sans-serif;font-weight:650;left:${right + 6}px;
      top:${parseFloat(row.style.top) + parseFloat(row.style.height) / 2}px;transform:translateY(-50%)`;
    label.append(isolated(shorten(this.tokens[query][0], 12)), " looks at ←");
    if (room < 110) label.style.display = "none";
    return label;
  }

  // ---- choices ----

  head(layer, head) {
    const { n_layers: L, n_heads: H } = this.data;
    if (layer < 0 || head < 0 || layer >= L || head >= H) return;
    this.at = `L${layer}H${head}`;
    this.frame();
    this.choose({});
  }

  choose(change) {
    this.seq += 1;
    this.choice = {
      at: this.at, token: this.pinned, window: this.window, theme: this.told ?? null,
      words: this.data.words, seq: this.seq, ...change,
    };
    clearTimeout(this.sending);
    const early = PACE - (performance.now() - (this.sent ?? -PACE));
    if (early > 0) this.sending = setTimeout(() => this.tell(), early);
    else this.tell();
  }

  tell() {
    this.sent = performance.now();
    this.send("focus", this.choice);
  }

  key(event) {
    const target = event.composedPath()[0];
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
    const steps = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] };
    const inStrip = this.position(target) !== null;
    if (inStrip) return this.stripKey(event);
    if (!(event.key in steps) || target.closest?.(TAKEN)) return;
    event.preventDefault();
    const [layer, head] = this.at.match(/\d+/g).map(Number);
    this.head(layer + steps[event.key][0], head + steps[event.key][1]);
  }

  stripKey(event) {
    const here = this.hovered ?? this.pinned, last = this.tokens.length - 1;
    const targets = { ArrowLeft: here - 1, ArrowRight: here + 1, Home: 0, End: last };
    if (event.key in targets) {
      this.chips[Math.min(Math.max(targets[event.key], 0), last)].focus();
    } else if (event.key === "Enter" || event.key === " ") {
      this.pin(here);
    } else if (event.key === "Escape") {
      event.composedPath()[0].blur();
    } else return;
    event.preventDefault();
    event.stopPropagation();
  }
}

const TAKEN = "input, textarea, select, [contenteditable], [role=listbox], [role=option], [role=tab], " +
  "[role=slider], [role=menu], [role=radiogroup], [role=combobox], [role=dialog]";

// A finger scrolls the page: it must neither zoom the map nor choose where it merely passed.
function finger(gd) {
  const coarse = matchMedia("(pointer: coarse)").matches;
  let start = null, moved = false;
  const place = ({ touches: [touch] }) => [touch.clientX, touch.clientY];
  gd.addEventListener("touchstart", (event) => {
    start = place(event);
    moved = false;
  }, { passive: true, capture: true });
  gd.addEventListener("touchmove", (event) => {
    const [x, y] = place(event);
    if (start && Math.hypot(x - start[0], y - start[1]) > 10) moved = true;
  }, { passive: true, capture: true });
  return {
    tapped: () => !moved,
    calm: () => coarse && gd._fullLayout?.dragmode && window.Plotly?.relayout(gd, { dragmode: false }),
  };
}

// Of numbers in a row, those that would run into the one before them are left out.
function thin(texts) {
  const boxes = [...texts].map((text) => [text, text.getBoundingClientRect()]);
  let right = -Infinity;
  for (const [text, { left, right: end, width, height }] of boxes.sort((a, b) => a[1].left - b[1].left)) {
    const upright = boxes[0][1].left === boxes.at(-1)[1].left;
    const shown = upright || left >= right + height / 6;
    text.style.visibility = shown ? "" : "hidden";
    if (shown && width) right = end;
  }
}

function element(tag, className, text) {
  const node = document.createElement(tag);
  if (className) node.className = className;
  if (text !== undefined) node.textContent = text;
  return node;
}

function isolated(text) {
  const node = element("bdi", "", text);
  return node;
}

// A label with its leading space mark made lighter.
function write(node, label) {
  if (label.startsWith("·") && label.length > 1) node.append(element("span", "dot", "·"), label.slice(1));
  else node.append(label);
}

function shorten(text, limit) {
  const letters = [...text];
  if (letters.length <= limit) return text;
  const half = limit >> 1;
  return letters.slice(0, half).join("") + "…" + letters.slice(letters.length - (limit - half - 1)).join("");
}

function strongest(n, weight) {
  const all = [];
  for (let i = 0; i < n; i++) {
    const w = weight(i);
    if (w >= SHOWN) all.push([i, w]);
  }
  return all.sort((a, b) => b[1] - a[1]).slice(0, NAMED);
}

function short(weight) {
  return weight >= 0.995 ? "1" : weight.toFixed(2).slice(1);
}

function long(weight) {
  return weight >= 0.995 ? "1" : weight.toFixed(2);
}

// Two 12-bit numbers in three bytes.
function unpack(base64) {
  const bytes = Uint8Array.from(atob(base64), (c) => c.charCodeAt(0));
  const numbers = new Uint16Array((bytes.length / 3) * 2);
  for (let from = 0, to = 0; from < bytes.length; from += 3, to += 2) {
    numbers[to] = bytes[from] | ((bytes[from + 1] & 15) << 8);
    numbers[to + 1] = (bytes[from + 1] >> 4) | (bytes[from + 2] << 4);
  }
  return numbers;
}

function rgb(hex) {
  return [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16));
}

function luminance(colour) {
  const hex = colour.startsWith("#") ? rgb(colour) : (colour.match(/[\d.]+/g) ?? [255, 255, 255]).map(Number);
  return (0.2126 * hex[0] + 0.7152 * hex[1] + 0.0722 * hex[2]) / 255;
}
