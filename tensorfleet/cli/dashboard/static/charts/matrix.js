// A matrix of numbers as colours, on a canvas: 200 x 200 cells are drawn as fast as 2 x 3.

import { colour, h, setAttribute, tip } from "../dom.js";

const LABEL_PIXELS = 13; // a row lower than this has no label

export class Matrix {
  /** `tell(row, column, value)` are the lines of a cell's tip; `write(value)` stands in a large cell. */
  constructor({ label, tell, write, height = 240 }) {
    Object.assign(this, { label, tell, write, height, at: null });
    this.canvas = h("canvas", { class: "matrix", role: "img", tabindex: 0 });
    this.root = h("div", { class: "matrix-box" }, this.canvas);
    new ResizeObserver(() => this.draw()).observe(this.root);
    this.canvas.addEventListener("pointermove", (event) => this.point(event));
    for (const name of ["pointerleave", "blur"]) this.canvas.addEventListener(name, () => this.leave());
    this.canvas.addEventListener("keydown", (event) => this.key(event));
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.draw());
    addEventListener("themechange", () => this.draw());
  }

  /** `values[row][column]`: numbers; 0 or null is an empty cell. `scale` may be "log". */
  update(rows, columns, values, summary) {
    Object.assign(this, { rows, columns, values });
    setAttribute(this.canvas, "aria-label", `${this.label}. ${summary} Arrow keys read single cells.`);
    this.draw();
  }

  draw() {
    const width = Math.floor(this.root.clientWidth);
    if (!width || !this.rows) return;
    const ratio = devicePixelRatio || 1;
    this.layout(width);
    const { canvas } = this;
    const pixels = [Math.round(width * ratio), Math.round(this.full * ratio)];
    if (canvas.width !== pixels[0] || canvas.height !== pixels[1]) [canvas.width, canvas.height] = pixels;
    canvas.style.height = `${this.full}px`;
    const context = canvas.getContext("2d");
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, width, this.full);
    context.font = `11.5px ${getComputedStyle(canvas).fontFamily}`;
    this.cells(context);
    this.labels(context);
    if (this.at) this.outline(context);
  }

  layout(width) {
    const longest = Math.max(...this.rows.map((name) => name.length), 4);
    this.left = Math.min(92, longest * 7 + 10);
    this.top = 20;
    this.cellWidth = (width - this.left - 2) / Math.max(this.columns.length, 1);
    this.cellHeight = Math.min(46, (this.height - this.top) / Math.max(this.rows.length, 1));
    this.full = Math.ceil(this.top + this.cellHeight * this.rows.length + 2);
  }

  cells(context) {
    const most = Math.max(...this.values.map((row) => Math.max(...row, 0)), 1e-9);
    const gap = Math.min(this.cellWidth, this.cellHeight) > 6 ? 1.5 : 0;
    const isLarge = this.write && this.cellWidth > 66 && this.cellHeight > 20;
    const [heat, empty, text, inverse] = ["--heat", "--sunken", "--text", "--surface"].map(colour);
    context.textAlign = "center";
    context.textBaseline = "middle";
    this.values.forEach((row, r) => {
      row.forEach((value, c) => {
        const x = this.left + c * this.cellWidth;
        const y = this.top + r * this.cellHeight;
        const strength = value > 0 ? 0.08 + 0.92 * (value / most) ** 0.7 : 0;
        context.globalAlpha = 1;
        context.fillStyle = empty;
        context.fillRect(x, y, this.cellWidth - gap, this.cellHeight - gap);
        context.globalAlpha = strength;
        context.fillStyle = heat;
        if (strength) context.fillRect(x, y, this.cellWidth - gap, this.cellHeight - gap);
        context.globalAlpha = 1;
        if (isLarge && value > 0) {
          context.fillStyle = strength > 0.62 ? inverse : text;
          context.fillText(this.write(value), x + this.cellWidth / 2, y + this.cellHeight / 2);
        }
      });
    });
  }

  labels(context) {
    context.fillStyle = colour("--muted");
    context.textAlign = "right";
    const every = Math.max(1, Math.ceil(LABEL_PIXELS / this.cellHeight));
    this.rows.forEach((name, r) => {
      if (r % every === 0) context.fillText(name, this.left - 8, this.top + (r + 0.5) * this.cellHeight);
    });
    const wide = Math.max(...this.columns.map((name) => name.length), 1) * 7 + 10;
    const step = Math.max(1, Math.ceil(wide / this.cellWidth));
    context.textAlign = step > 1 ? "left" : "center";
    this.columns.forEach((name, c) => {
      const x = this.left + (step > 1 ? c : c + 0.5) * this.cellWidth;
      if (c % step === 0 && x + (step > 1 ? wide - 10 : 0) <= this.left + this.columns.length * this.cellWidth + 2) context.fillText(name, x, 9);
    });
  }

  outline(context) {
    const [r, c] = this.at;
    context.strokeStyle = colour("--text");
    context.lineWidth = 1.5;
    context.strokeRect(this.left + c * this.cellWidth, this.top + r * this.cellHeight, this.cellWidth, this.cellHeight);
  }

  point(event) {
    const box = this.canvas.getBoundingClientRect();
    const c = Math.floor((event.clientX - box.left - this.left) / this.cellWidth);
    const r = Math.floor((event.clientY - box.top - this.top) / this.cellHeight);
    if (r < 0 || c < 0 || r >= this.rows.length || c >= this.columns.length) this.leave();
    else this.mark([r, c], event.clientX, event.clientY);
  }

  key(event) {
    const by = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] }[event.key];
    if (event.key === "Escape") this.leave();
    if (!by || !this.rows?.length || !this.columns.length) return;
    event.preventDefault();
    const from = this.at ?? [0, 0];
    const step = (i, size) => Math.max(0, Math.min(size - 1, i));
    const at = this.at ? [step(from[0] + by[0], this.rows.length), step(from[1] + by[1], this.columns.length)] : from;
    const box = this.canvas.getBoundingClientRect();
    this.mark(at, box.left + this.left + (at[1] + 0.5) * this.cellWidth, box.top + this.top + (at[0] + 0.5) * this.cellHeight);
  }

  mark(at, x, y) {
    const isOther = !this.at || this.at[0] !== at[0] || this.at[1] !== at[1];
    this.at = at;
    if (isOther) this.draw();
    tip.show(x, y, this.tell(at[0], at[1], this.values[at[0]][at[1]]));
  }

  leave() {
    tip.hide();
    if (!this.at) return;
    this.at = null;
    this.draw();
  }
}
