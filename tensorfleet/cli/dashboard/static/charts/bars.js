// Bars: the parts of a step, the load of servers, a histogram.

import { Keyed, h, s, setAttribute, setText, tip } from "../dom.js";
import { percent } from "../format.js";

/** Rows of a name, a bar and a number; parts of the bar are stacked. */
export class BarList {
  constructor(label) {
    this.root = h("ul", { class: "bars", "aria-label": label });
    this.rows = new Keyed(this.root, () => {
      const name = h("a", { class: "bar-name" });
      const track = h("div", { class: "track" });
      const value = h("span", { class: "bar-value" });
      const pieces = new Keyed(track, () => h("span", { class: "piece" }));
      const root = h("li", {}, name, track, value);
      const entry = { root, name, track, value, pieces, row: null };
      track.addEventListener("pointermove", (event) => entry.row?.tip && tip.show(event.clientX, event.clientY, entry.row.tip()));
      track.addEventListener("pointerleave", () => tip.hide());
      return entry;
    });
  }

  /** `rows`: [{key, name, href, value, parts: [{name, fraction, className}], mark, className, about, tip}]. */
  update(rows) {
    this.rows.update(rows, (row) => row.key, (entry, row) => {
      entry.row = row;
      setText(entry.name, row.name);
      setAttribute(entry.name, "href", row.href ?? null);
      setText(entry.value, row.value);
      setAttribute(entry.root, "class", row.className ?? null);
      setAttribute(entry.track, "role", "img");
      setAttribute(entry.track, "aria-label", row.about);
      entry.pieces.update(row.parts, (part) => part.name, (node, part) => {
        node.style.width = `${(100 * part.fraction).toFixed(2)}%`;
        setAttribute(node, "class", `piece ${part.className}`);
      });
      entry.track.style.setProperty("--mark", row.mark === undefined ? "-10%" : `${(100 * row.mark).toFixed(2)}%`);
    });
  }
}

/** Upright bars without names, for many: [{name, value, className, href}] with a line at `mean`. */
export class Columns {
  constructor(label, format, height = 150) {
    Object.assign(this, { label, format, height });
    this.bars = s("g");
    this.mean = s("line", { class: "mean", x1: 0, x2: 1000 });
    this.svg = s("svg", { class: "columns", viewBox: `0 0 1000 ${height}`, height, preserveAspectRatio: "none", role: "img", tabindex: 0 }, this.bars, this.mean);
    this.root = h("div", { class: "columns-box" }, this.svg);
    this.items = new Keyed(this.bars, () => s("rect"));
    this.at = 0;
    this.svg.addEventListener("pointermove", (event) => this.point(event));
    for (const name of ["pointerleave", "blur"]) this.svg.addEventListener(name, () => tip.hide());
    this.svg.addEventListener("keydown", (event) => {
      const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      if (!by || !this.rows?.length) return;
      event.preventDefault();
      this.at = Math.max(0, Math.min(this.rows.length - 1, this.at + by));
      const box = this.svg.getBoundingClientRect();
      this.tell(box.left + (box.width * (this.at + 0.5)) / this.rows.length, box.top);
    });
  }

  update(rows, mean) {
    this.rows = rows;
    const most = Math.max(...rows.map((row) => row.value), mean ?? 0, 1e-9);
    const width = 1000 / Math.max(rows.length, 1);
    const y = (value) => this.height - (this.height - 6) * (value / most);
    this.items.update(rows, (row) => row.name, (node, row) => {
      const i = rows.indexOf(row);
      setAttribute(node, "x", (i * width + width * 0.1).toFixed(2));
      setAttribute(node, "width", (width * 0.8).toFixed(2));
      setAttribute(node, "y", y(row.value).toFixed(1));
      setAttribute(node, "height", (this.height - y(row.value)).toFixed(1));
      setAttribute(node, "class", row.className ?? "column");
    });
    setAttribute(this.mean, "y1", y(mean ?? 0));
    setAttribute(this.mean, "y2", y(mean ?? 0));
    setAttribute(this.svg, "aria-label", `${this.label}: ${rows.length} tasks, mean ${this.format(mean)}. Arrow keys read single ones.`);
  }

  point(event) {
    const box = this.svg.getBoundingClientRect();
    this.at = Math.max(0, Math.min(this.rows.length - 1, Math.floor(((event.clientX - box.left) / box.width) * this.rows.length)));
    this.tell(event.clientX, event.clientY);
  }

  tell(x, y) {
    const row = this.rows[this.at];
    if (row) tip.show(x, y, [h("b", { text: row.name }), this.format(row.value)]);
  }
}

/** A histogram of counts by a small whole number. */
export function histogram(counts, label, bins = 16) {
  const keys = Object.keys(counts).map(Number).sort((a, b) => a - b);
  const last = keys.at(-1) ?? 0;
  const size = Math.max(1, Math.ceil((last + 1) / bins));
  const sums = new Array(Math.max(1, Math.ceil((last + 1) / size))).fill(0);
  for (const key of keys) sums[Math.floor(key / size)] += counts[key];
  const most = Math.max(...sums, 1);
  const all = sums.reduce((a, b) => a + b, 0) || 1;
  const width = 100 / Math.max(sums.length, 6);
  const bars = sums.map((count, i) => {
    const height = count ? Math.max(1, (44 * count) / most) : 0;
    const name = size > 1 ? `${i * size} to ${i * size + size - 1}` : `${i}`;
    const rect = s("rect", { x: i * width + width * 0.08, width: width * 0.84, y: 46 - height, height });
    rect.addEventListener("pointermove", (event) => tip.show(event.clientX, event.clientY, [`stale by ${name}: ${percent(count / all)} (${count.toLocaleString("en-US")})`]));
    rect.addEventListener("pointerleave", () => tip.hide());
    return rect;
  });
  const svg = s("svg", { class: "histogram", viewBox: "0 0 100 47", preserveAspectRatio: "none", role: "img", "aria-label": label }, s("line", { x1: 0, x2: 100, y1: 46.5, y2: 46.5 }), ...bars);
  return { svg, last: sums.length * size - 1, mean: keys.reduce((sum, key) => sum + key * counts[key], 0) / all };
}
