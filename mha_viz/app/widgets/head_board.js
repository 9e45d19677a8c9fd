// A board of all heads that switches them off and on. What is chosen goes to Python as one state,
// "choice", with a sequence number; Python answers with the number it has seen, so that a late
// answer never takes back a newer click.

const instances = new WeakMap();

export default function ({ data, parentElement, setStateValue }) {
  let board = instances.get(parentElement);
  if (!board) {
    board = new Board(parentElement);
    instances.set(parentElement, board);
  }
  board.send = setStateValue;
  board.update(data);
  return () => instances.delete(parentElement);
}

const name = (layer, head) => `L${layer}H${head}`;

class Board {
  constructor(parent) {
    this.root = parent.querySelector(".board");
    this.seq = 0;
    this.root.onclick = (event) => this.click(event.target.closest("button"));
    this.root.onkeydown = (event) => this.key(event);
  }

  update(data) {
    const rebuilt = !this.data || this.data.n_layers !== data.n_layers
      || this.data.n_heads !== data.n_heads;
    const fresh = this.seq === 0 && !this.data;
    this.data = data;
    if (fresh || data.ack >= this.seq) {
      this.seq = Math.max(this.seq, data.ack);
      this.off = new Set(data.off);
    }
    for (const [key, colour] of Object.entries(data.colours)) {
      this.root.style.setProperty(`--${key}`, colour);
    }
    this.root.classList.toggle("stage", data.stage);
    if (rebuilt) this.build();
    this.paint();
  }

  build() {
    const { n_layers: L, n_heads: H } = this.data;
    this.root.style.setProperty("--heads", H);
    this.root.style.setProperty("--image-size", `${H * 100}% ${L * 100}%`);
    this.cells = new Map();
    const parts = [this.label("", "corner", "All heads off, or all on")];
    for (let h = 0; h < H; h++) parts.push(this.label(`H${h}`, `column ${h}`, `Head ${h} of every layer`));
    for (let l = 0; l < L; l++) {
      parts.push(this.label(`L${l}`, `row ${l}`, `Every head of layer ${l}`));
      for (let h = 0; h < H; h++) {
        const cell = document.createElement("button");
        cell.className = "cell";
        cell.dataset.head = name(l, h);
        cell.tabIndex = l || h ? -1 : 0;
        cell.style.backgroundPosition =
          `${H > 1 ? (100 * h) / (H - 1) : 0}% ${L > 1 ? (100 * l) / (L - 1) : 0}%`;
        this.cells.set(name(l, h), cell);
        parts.push(cell);
      }
    }
    this.root.replaceChildren(...parts);
  }

  label(text, group, title) {
    const label = document.createElement("button");
    label.className = "label";
    label.textContent = text || "all";
    label.dataset.group = group;
    label.title = title;
    label.setAttribute("aria-label", title);
    return label;
  }

  paint() {
    const { image, values, gone, chosen } = this.data;
    this.root.style.setProperty("--image", `url(${image})`); // once, not once a cell
    const missing = new Set(gone);
    for (const [head, cell] of this.cells) {
      const off = this.off.has(head);
      const value = values?.[head];
      cell.classList.toggle("off", off);
      cell.classList.toggle("gone", missing.has(head));
      cell.classList.toggle("chosen", head === chosen);
      cell.disabled = missing.has(head);
      cell.style.backgroundImage = value ? "none" : "";
      cell.style.backgroundColor = value ? value.colour : "";
      cell.setAttribute("aria-pressed", String(!off));
      const said = head.replace("H", " H");
      const state = missing.has(head) ? "taken out of the model" : off ? "off" : "on";
      cell.title = `${said}, ${state}${value ? `: ${value.text}` : ""}`;
      cell.setAttribute("aria-label", cell.title);
    }
  }

  click(button) {
    if (!button || button.disabled) return;
    const { head, group } = button.dataset;
    if (head) {
      this.toggle([head]);
      this.focus(head);
    } else {
      const [kind, number] = group.split(" ");
      this.toggle([...this.cells.keys()].filter((key) => {
        const [layer, column] = key.slice(1).split("H");
        return kind === "corner" || (kind === "row" ? layer : column) === number;
      }));
    }
  }

  // A group goes off as a whole, and comes back once all of it is off.
  toggle(heads) {
    const here = heads.filter((head) => !this.cells.get(head).disabled);
    const all = here.every((head) => this.off.has(head));
    for (const head of here) all ? this.off.delete(head) : this.off.add(head);
    this.seq += 1;
    this.paint();
    const off = [...this.cells.keys()].filter((head) => this.off.has(head));
    this.send("choice", { off, seq: this.seq });
  }

  key(event) {
    const head = event.target.dataset?.head;
    const step = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] }[event.key];
    if (!head || !step || event.ctrlKey || event.metaKey || event.altKey) return;
    const [layer, column] = head.slice(1).split("H").map(Number);
    const to = name(layer + step[0], column + step[1]);
    if (this.cells.has(to)) this.focus(to);
    event.preventDefault();
    event.stopPropagation();
  }

  focus(head) {
    for (const [key, cell] of this.cells) cell.tabIndex = key === head ? 0 : -1;
    this.cells.get(head).focus();
  }
}
