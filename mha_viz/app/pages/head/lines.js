// Tokens in two rows, and lines between them for what heads look at. The strongest are drawn once;
// all lines of a token that is pointed at are drawn over them, without the server. What is pinned goes
// to Python as one state, "pin", with a sequence number; Python answers with the number it has seen,
// so that a late answer never takes back a newer press.
// Token text enters the page through textContent and fillText alone.

const instances = new WeakMap();

export default function ({ data, parentElement, setStateValue }) {
  let lines = instances.get(parentElement);
  if (!lines) {
    lines = new Lines(parentElement);
    instances.set(parentElement, lines);
  }
  lines.send = setStateValue;
  lines.update(data);
  return () => {
    lines.destroy();
    instances.delete(parentElement);
  };
}

const STEPS = 10; // strengths; the lines of one head and strength are one stroke
const FAINTEST = 0.1;
const FADED = 0.12; // of all lines, while a token is lit
const NAMED = 3; // keys of a head that the sentence names
const LABEL = 12; // letters of a token
const ACROSS = 300; // pixels between the rows of the horizontal picture
const LONGEST = 960; // pixels of the vertical picture, for as long as a token has a pixel

class Lines {
  constructor(parent) {
    this.root = parent.querySelector(".lines");
    this.host = parent.host ?? parent;
    this.legend = this.root.querySelector(".legend");
    this.stage = this.root.querySelector(".stage");
    this.sentence = this.root.querySelector(".sentence");
    [this.base, this.words, this.top] = this.root.querySelectorAll("canvas");
    this.seq = 0;
    this.lit = null;
    this.solo = null;
    this.resized = new ResizeObserver(() => this.stage.clientWidth !== this.width && this.frame());
    this.resized.observe(this.stage);
    document.fonts?.ready.then(() => this.frame());
    this.stage.onpointermove = (event) => event.pointerType !== "touch" && this.point(event);
    this.stage.onpointerleave = () => this.light(null);
    this.stage.onclick = (event) => this.press(this.hit(event));
    this.stage.onkeydown = (event) => this.key(event);
    this.stage.onblur = () => this.light(null);
    for (const button of this.root.querySelectorAll(".save button")) {
      button.onclick = () => this.save(button.dataset.format);
    }
  }

  destroy() {
    this.resized.disconnect();
    cancelAnimationFrame(this.pending);
  }

  update(data) {
    const fresh = !this.data;
    this.data = data;
    if (fresh || data.ack >= this.seq) {
      this.seq = Math.max(this.seq, data.ack);
      this.pinned = data.pinned;
    }
    if (data.words !== this.known || this.lit?.at >= data.tokens.length) this.lit = null;
    this.known = data.words;
    this.heads = data.heads.map((head) => ({ ...head, ...unpack(head.lines) }));
    this.labels = data.tokens.map((label) => shorten(label, LABEL));
    if (this.solo !== null && this.solo >= this.heads.length) this.solo = null;
    this.theme();
    this.name();
    this.draw();
  }

  // The browser knows the scheme first.
  theme() {
    const style = getComputedStyle(this.host);
    const page = style.getPropertyValue("--st-background-color").trim();
    this.palette = this.data.palettes[page && luminance(page) < 0.5 ? "dark" : "light"];
    for (const key of ["ink", "muted", "query", "key", "page", "control"]) {
      this.root.style.setProperty(`--${key}`, this.palette[key]);
    }
    this.mono = style.getPropertyValue("--st-code-font").trim() || "monospace";
    this.sans = style.getPropertyValue("--st-font").trim() || "sans-serif";
    this.root.classList.toggle("large", this.data.stage);
  }

  name() {
    const buttons = this.heads.map((head, i) => {
      const button = document.createElement("button");
      button.textContent = head.name;
      button.style.setProperty("--own", this.colour(i));
      button.title = `Only ${head.name}, or all again`;
      button.setAttribute("aria-pressed", String(this.solo === null || this.solo === i));
      button.onclick = () => {
        this.solo = this.solo === i ? null : i;
        this.name();
        this.draw();
        this.legend.children[i].focus();
      };
      return button;
    });
    this.legend.replaceChildren(...(this.heads.length > 1 ? buttons : []));
    this.stage.setAttribute("aria-label",
      `${this.heads.map((head) => head.name).join(", ")}: lines between tokens. ` +
      "Arrow keys move the lit token, and change its side; Enter pins it.");
  }

  colour(head) {
    return this.palette.categorical[head % this.palette.categorical.length];
  }

  // ---- geometry: a token lies `at` pixels along, on the side that looks or the one looked at ----

  measure() {
    const size = this.data.stage ? 18 : 14;
    const width = this.stage.clientWidth, T = this.labels.length;
    const pen = this.words.getContext("2d");
    pen.font = `${size}px ${this.mono}`;
    const longest = Math.max(...this.labels.map((label) => pen.measureText(label).width));
    const upright = this.data.direction === "vertical";
    const title = upright ? (width < 480 ? 2.5 : 5) * size : 0;
    const room = Math.max(title, Math.min(longest, 11 * size) + 12);
    const pitch = upright
      ? Math.max(1, Math.min(size + 7, LONGEST / T))
      : (width - 2 * size) / T;
    const turned = !upright && room > pitch;
    const head = size + 10; // the names of the two sides
    const label = upright || turned ? room : size + 10;
    const height = upright ? head + T * pitch + 4 : 2 * (head + label) + ACROSS;
    const near = upright ? label : head + label;
    const far = upright ? width - label : height - head - label;
    Object.assign(this, { size, width, height, pitch, room, upright, turned, head, near, far });
    this.start = upright ? head : size;
  }

  along(position) {
    return this.start + (position + 0.5) * this.pitch;
  }

  // With several heads a token has a lane for each, so that lines between the same tokens show.
  lane(head) {
    const n = this.heads.length;
    const apart = Math.min(2.5, (0.7 * this.pitch) / n);
    return (head - (n - 1) / 2) * apart;
  }

  hit(event) {
    const { left, top } = this.stage.getBoundingClientRect();
    const [along, across] = this.upright
      ? [event.clientY - top, event.clientX - left]
      : [event.clientX - left, event.clientY - top];
    const at = Math.floor((along - this.start) / this.pitch);
    if (at < 0 || at >= this.labels.length) return null;
    return { at, side: across < (this.near + this.far) / 2 ? "query" : "key" };
  }

  // ---- drawing ----

  frame() {
    this.pending ??= requestAnimationFrame(() => {
      this.pending = null;
      if (this.data) this.draw();
    });
  }

  draw() {
    if (!this.stage.clientWidth) return;
    this.measure();
    this.stage.style.height = `${this.height}px`;
    for (const canvas of [this.base, this.words, this.top]) this.fit(canvas);
    this.lines(this.base.getContext("2d"), null);
    this.paint();
  }

  fit(canvas) {
    const ratio = Math.min(devicePixelRatio || 1, 3);
    canvas.width = Math.round(this.width * ratio);
    canvas.height = Math.round(this.height * ratio);
    canvas.style.width = `${this.width}px`;
    canvas.style.height = `${this.height}px`;
    canvas.getContext("2d").scale(ratio, ratio);
  }

  // The lines of a head, or of them those of one token: a stroke for each strength.
  strokes(pen, number, { queries, keys, weights, at_rest }, only) {
    const Path = pen instanceof SvgPen ? SvgPath : Path2D;
    const paths = Array.from({ length: STEPS }, () => null);
    const lane = this.lane(number), { near, far, upright } = this;
    const ends = only && (only.side === "query" ? queries : keys);
    for (let i = 0; i < (only ? weights.length : at_rest); i++) {
      if (ends && ends[i] !== only.at) continue;
      const step = Math.min(STEPS - 1, Math.floor(Math.sqrt(weights[i] / 65535) * STEPS));
      const path = (paths[step] ??= new Path());
      const from = this.along(queries[i]) + lane, to = this.along(keys[i]) + lane;
      if (upright) {
        path.moveTo(near, from);
        path.lineTo(far, to);
      } else {
        path.moveTo(from, near);
        path.lineTo(to, far);
      }
    }
    pen.strokeStyle = this.colour(number);
    const widest = only ? 3 : Math.min(3, 0.4 + this.pitch / 6);
    for (const [step, path] of paths.entries()) {
      if (!path) continue;
      const strength = (step + 0.5) / STEPS;
      pen.globalAlpha = only ? Math.max(0.35, strength) : FAINTEST + (1 - FAINTEST) * strength ** 1.5;
      pen.lineWidth = Math.max(0.5, widest * strength);
      pen.stroke(path);
    }
    pen.globalAlpha = 1;
  }

  // The labels of both sides: as many as find room, and before all others those in `bold`.
  text(pen, bold) {
    const { size, upright, near, far } = this;
    pen.clearRect(0, 0, this.width, this.height);
    pen.fillStyle = this.palette.muted;
    pen.font = `${size - 1}px ${this.sans}`;
    const sides = this.width < 480 ? ["from", "to"] : ["looks from", "looks at"];
    pen.textAlign = upright ? "right" : "left";
    pen.fillText(sides[0], upright ? near - 6 : this.start, size);
    pen.textAlign = "left";
    pen.fillText(sides[1], upright ? far + 6 : this.start, upright ? size : this.height - 6);
    for (const side of ["query", "key"]) {
      const placed = this.spread(bold[side] ?? []);
      for (const at of placed) this.label(pen, at, side, this.palette[side], 650);
      const others = this.spread(this.labels.keys(), placed).slice(placed.length);
      for (const at of others) this.label(pen, at, side, this.palette.ink, 400);
    }
  }

  // Of positions, the earlier first, those that have room beside the ones taken before them.
  spread(positions, taken = []) {
    const gap = this.upright || this.turned ? this.size + 1 : 0;
    const found = [...taken];
    const place = (at) => Math.floor(this.along(at) / (gap || 1));
    const rows = new Map(taken.map((at) => [place(at), at]));
    const free = (at) => [-1, 0, 1].every((d) => {
      const there = rows.get(place(at) + d);
      return there === undefined || Math.abs(this.along(there) - this.along(at)) >= gap;
    });
    for (const at of positions) {
      if (gap && !free(at)) continue;
      rows.set(place(at), at);
      found.push(at);
    }
    return found;
  }

  label(pen, position, side, colour, weight) {
    const { size, upright, near, far, turned } = this;
    const along = this.along(position), query = side === "query";
    pen.save();
    pen.font = `${weight} ${size}px ${this.mono}`;
    pen.textBaseline = "middle";
    pen.fillStyle = colour;
    pen.translate(...(upright ? [query ? near : far, along] : [along, query ? near : far]));
    if (turned) pen.rotate(-Math.PI / 2);
    if (upright || turned) {
      const left = query !== turned; // of its end of the lines, once turned
      pen.textAlign = left ? "right" : "left";
      pen.fillText(this.labels[position], left ? -6 : 6, 0);
    } else {
      pen.textAlign = "center";
      pen.fillText(this.labels[position], 0, (query ? -1 : 1) * (size / 2 + 4));
    }
    pen.restore();
  }

  // ---- what is lit: pointed at, or else pinned ----

  paint() {
    const lit = this.lit ?? this.pinned;
    const pen = this.top.getContext("2d");
    pen.clearRect(0, 0, this.width, this.height);
    this.base.style.opacity = lit ? FADED : 1;
    if (lit) this.lines(pen, lit);
    this.text(this.words.getContext("2d"), this.bold(lit));
    this.say(lit);
  }

  lines(pen, only) {
    for (const [i, head] of this.shown()) this.strokes(pen, i, head, only);
  }

  shown() {
    return [...this.heads.entries()].filter(([i]) => this.solo === null || this.solo === i);
  }

  // The tokens to name: the one that is lit, and those at the other ends of its lines.
  bold(lit) {
    if (!lit) return {};
    const ends = new Map();
    for (const [, head] of this.shown()) {
      for (const [end, weight] of this.of(head, lit)) {
        ends.set(end, Math.max(weight, ends.get(end) ?? 0));
      }
    }
    const strongest = [...ends].sort((a, b) => b[1] - a[1]).map(([end]) => end);
    const other = lit.side === "query" ? "key" : "query";
    return { [lit.side]: [lit.at], [other]: strongest };
  }

  of({ queries, keys, weights }, { at, side }) {
    const [mine, others] = side === "query" ? [queries, keys] : [keys, queries];
    const found = [];
    for (let i = 0; i < mine.length; i++) if (mine[i] === at) found.push([others[i], weights[i] / 65535]);
    return found;
  }

  say(lit) {
    const parts = [];
    if (!lit) {
      parts.push(element("span", "muted", "Point at a token, or move with the arrow keys: its lines light up."));
    } else {
      parts.push(this.token(lit.at, "b"), lit.side === "query" ? " looks at " : " is looked at by ");
      for (const [i, head] of this.shown()) {
        const found = this.of(head, lit); // the strongest first, as they came
        const by = element("span", "by", head.name);
        by.style.setProperty("--own", this.colour(i));
        parts.push(by);
        for (const [end, weight] of found.slice(0, NAMED)) {
          const pair = element("span", "pair");
          pair.append(this.token(end, "span"), weight < 0.01 ? " <0.01" : ` ${weight.toFixed(2)}`);
          parts.push(pair);
        }
        if (!found.length) parts.push(element("span", "pair muted", "no line"));
      }
    }
    this.sentence.replaceChildren(...parts);
  }

  // ---- to take away ----

  async save(format) {
    const lit = this.lit ?? this.pinned;
    const file = format === "svg" ? this.svg(lit) : await this.png(lit);
    const link = document.createElement("a");
    link.href = URL.createObjectURL(file);
    link.download = `lines-${this.heads.map((head) => head.name.replace(" ", "")).join("-")}.${format}`;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
  }

  svg(lit) {
    const pen = new SvgPen(this.width, this.height, this.palette.page);
    this.lines(pen, lit);
    this.text(pen, this.bold(lit));
    return pen.file();
  }

  png(lit) {
    const sheet = document.createElement("canvas");
    this.fit(sheet);
    const pen = sheet.getContext("2d");
    pen.fillStyle = this.palette.page;
    pen.fillRect(0, 0, this.width, this.height);
    for (const canvas of lit ? [this.top, this.words] : [this.base, this.words]) {
      pen.drawImage(canvas, 0, 0, this.width, this.height);
    }
    return new Promise((done) => sheet.toBlob(done, "image/png"));
  }

  token(position, tag) {
    const token = element(tag, "token", this.labels[position]);
    token.append(element("sub", "", String(position)));
    return token;
  }

  light(lit) {
    if (lit?.at === this.lit?.at && lit?.side === this.lit?.side) return;
    this.lit = lit;
    this.paint();
  }

  point(event) {
    this.light(this.hit(event));
  }

  press(lit) {
    if (!lit) return;
    const again = this.pinned?.at === lit.at && this.pinned?.side === lit.side;
    this.pinned = again ? null : lit;
    if (again) this.lit = null;
    this.seq += 1;
    this.paint();
    this.send("pin", { pinned: this.pinned, words: this.data.words, seq: this.seq });
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const last = this.labels.length - 1;
    const here = this.lit ?? this.pinned ?? { at: last, side: "query" };
    const [back, on, ...turn] = this.upright
      ? ["ArrowUp", "ArrowDown", "ArrowLeft", "ArrowRight"]
      : ["ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown"];
    const move = (at) => this.light({ ...here, at: Math.min(Math.max(at, 0), last) });
    if (event.key === back) move(here.at - 1);
    else if (event.key === on) move(here.at + 1);
    else if (event.key === "Home") move(0);
    else if (event.key === "End") move(last);
    else if (turn.includes(event.key)) this.light({ ...here, side: event.key === turn[0] ? "query" : "key" });
    else if (event.key === "Enter" || event.key === " ") this.press(here);
    else if (event.key === "Escape") this.light(null);
    else return;
    event.preventDefault();
    event.stopPropagation();
  }
}

function element(tag, className, text) {
  const node = document.createElement(tag);
  if (className) node.className = className;
  if (text !== undefined) node.textContent = text;
  return node;
}

function shorten(text, limit) {
  const letters = [...text];
  if (letters.length <= limit) return text;
  const half = limit >> 1;
  return letters.slice(0, half).join("") + "…" + letters.slice(letters.length - (limit - half - 1)).join("");
}

// Queries, keys and weights, each as 16-bit numbers, one kind after the other.
function unpack(base64) {
  const bytes = Uint8Array.from(atob(base64), (c) => c.charCodeAt(0));
  const all = new Uint16Array(bytes.buffer), n = all.length / 3;
  return { queries: all.subarray(0, n), keys: all.subarray(n, 2 * n), weights: all.subarray(2 * n) };
}

function luminance(colour) {
  const hex = colour.startsWith("#")
    ? [1, 3, 5].map((i) => parseInt(colour.slice(i, i + 2), 16))
    : (colour.match(/[\d.]+/g) ?? [255, 255, 255]).map(Number);
  return (0.2126 * hex[0] + 0.7152 * hex[1] + 0.0722 * hex[2]) / 255;
}
