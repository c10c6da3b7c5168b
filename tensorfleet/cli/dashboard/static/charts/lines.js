// A chart of lines over time; of bands (median, quartiles, extremes) when there are many.

import { Keyed, h, s, setAttribute, setText, tip } from "../dom.js";
import { age, clock } from "../format.js";
import { bands, pieces, range, thinned, ticks, timeTicks } from "./scale.js";

export const MANY = 12; // series; more of them are a band
/** What the newest moment is called: another word once the run has ended. */
export const axis = { last: "now" };
const LEFT = 52;
const RIGHT = 12;
const TOP = 8;
const BOTTOM = 20;

export class LineChart {
  /** `format` writes a value; `zero`: whether the axis begins at 0; `logarithmic` may be changed later. */
  constructor({ label, format, height = 168, zero = false, logarithmic = false }) {
    Object.assign(this, { label, format, height, zero, logarithmic, width: 0, at: null });
    this.grid = s("g", { class: "grid" });
    this.marks = s("g", { class: "marks" });
    this.cross = s("g", { class: "cross" });
    this.svg = s("svg", { class: "chart", role: "img", tabindex: 0, height }, this.grid, this.marks, this.cross);
    this.none = h("p", { class: "chart-none", text: "No data yet" });
    this.legend = h("ul", { class: "legend" });
    this.legendItems = new Keyed(this.legend, () => {
      const value = h("b");
      const name = h("span");
      const swatch = h("i", {});
      return { root: h("li", {}, swatch, name, value), value, name, swatch };
    });
    this.root = h("figure", { class: "chart-box" }, this.legend, h("div", { class: "chart-area" }, this.svg, this.none));
    this.lines = new Keyed(this.marks, (line) => s("path", { class: line.className }));
    this.listen();
  }

  listen() {
    new ResizeObserver(() => {
      const width = Math.round(this.svg.getBoundingClientRect().width);
      if (width && width !== this.width) {
        this.width = width;
        this.draw();
      }
    }).observe(this.svg);
    this.svg.addEventListener("pointermove", (event) => this.point(event.clientX - this.svg.getBoundingClientRect().left));
    this.svg.addEventListener("pointerleave", () => this.leave());
    this.svg.addEventListener("blur", () => this.leave());
    this.svg.addEventListener("keydown", (event) => {
      const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      if (event.key === "Escape") this.leave();
      if (!by || !this.parts) return;
      event.preventDefault();
      const at = this.at ?? (by < 0 ? this.parts.length : -1);
      this.mark(Math.max(0, Math.min(this.parts.length - 1, at + by)));
    });
  }

  /** `series`: [{name, values, tone}], tone 1 to 6; `apart` are named lines drawn over a band. */
  update(times, series, { band = false, apart = [] } = {}) {
    Object.assign(this, { times, series, band, apart });
    this.draw();
  }

  draw() {
    if (!this.width || !this.times) return;
    this.parts = pieces(this.times.length, Math.max(2, Math.floor((this.width - LEFT - RIGHT) / 2)));
    const drawn = this.prepare();
    const extent = range(drawn.extents);
    this.none.hidden = Boolean(extent);
    setAttribute(this.svg, "viewBox", `0 0 ${this.width} ${this.height}`);
    if (!extent) {
      this.grid.replaceChildren();
      this.lines.update([], (line) => line.key);
      return;
    }
    this.measure(extent);
    this.axes();
    this.lines.update(drawn.paths(), (line) => line.key, (node, line) => {
      setAttribute(node, "d", line.d);
      setAttribute(node, "class", line.className);
    });
    this.explain();
    if (this.at !== null) this.mark(Math.min(this.at, this.parts.length - 1));
  }

  prepare() {
    const alone = (this.band ? this.apart : this.series).map((one) => ({ ...one, thin: thinned(one.values, this.parts) }));
    this.bandValues = this.band ? bands(this.series.map((one) => one.values), this.parts) : null;
    this.alone = alone;
    const extents = alone.map((one) => one.thin);
    if (this.bandValues) extents.push(this.bandValues.flatMap((five) => (five ? [five[0], five[4]] : [])));
    const paths = () => {
      const lines = alone.map((one) => ({ key: one.name, className: `line tone-${one.tone ?? 1}`, d: this.path(one.thin) }));
      if (!this.bandValues) return lines;
      const five = (i) => this.bandValues.map((values) => values?.[i] ?? null);
      return [
        { key: "band:extremes", className: "band extremes", d: this.area(five(0), five(4)) },
        { key: "band:quartiles", className: "band quartiles", d: this.area(five(1), five(3)) },
        { key: "band:median", className: "line tone-1", d: this.path(five(2)) },
        ...lines,
      ];
    };
    return { extents, paths };
  }

  measure([low, high]) {
    this.isLog = this.logarithmic && low > 0;
    if (this.zero && low > 0 && !this.isLog) low = 0;
    if (low === high) {
      low -= Math.abs(low) * 0.1 || 0.5;
      high += Math.abs(high) * 0.1 || 0.5;
    }
    const rest = (high - low) * 0.06;
    if (!this.isLog) {
      high += rest;
      if (low !== 0 || !this.zero) low = low >= 0 ? Math.max(0, low - rest) : low - rest;
    }
    const scale = this.isLog ? Math.log10 : (value) => value;
    const [bottom, top] = [scale(low), scale(high)];
    const span = this.height - TOP - BOTTOM;
    this.y = (value) => TOP + span * (1 - (scale(value) - bottom) / (top - bottom || 1));
    this.first = this.times[0];
    this.last = this.times.at(-1);
    this.x = (time) => LEFT + ((this.width - LEFT - RIGHT) * (time - this.first)) / (this.last - this.first || 1);
    this.yTicks = this.isLog ? logTicks(low, high) : ticks(low, high, Math.max(2, Math.floor(span / 38)));
  }

  axes() {
    const nodes = [];
    for (const value of this.yTicks) {
      const y = this.y(value).toFixed(1);
      nodes.push(s("line", { x1: LEFT, x2: this.width - RIGHT, y1: y, y2: y }));
      nodes.push(s("text", { x: LEFT - 8, y: Number(y) + 4, "text-anchor": "end", text: this.format(value) }));
    }
    const seconds = this.last - this.first;
    for (const back of timeTicks(seconds, Math.max(2, Math.floor(this.width / 84)))) {
      const x = this.x(this.last - back);
      if (x < LEFT + 12) continue;
      const anchor = back ? "middle" : "end";
      nodes.push(s("text", { x: x.toFixed(1), y: this.height - 5, "text-anchor": anchor, text: back ? `−${age(back)}` : axis.last }));
    }
    this.grid.replaceChildren(...nodes);
  }

  time(i) {
    const [first, end] = this.parts[i];
    return (this.times[first] + this.times[end - 1]) / 2;
  }

  path(values) {
    let d = "";
    let isOn = false;
    values.forEach((value, i) => {
      if (value === null || (this.isLog && value <= 0)) isOn = false;
      else {
        d += `${isOn ? "L" : "M"}${this.x(this.time(i)).toFixed(1)} ${this.y(value).toFixed(1)}`;
        isOn = true;
      }
    });
    return d;
  }

  area(lower, upper) {
    const known = upper.map((_, i) => i).filter((i) => upper[i] !== null && !(this.isLog && lower[i] <= 0));
    if (known.length < 2) return "";
    const corner = (values) => (i) => `${this.x(this.time(i)).toFixed(1)} ${this.y(values[i]).toFixed(1)}`;
    return `M${known.map(corner(upper)).join("L")}L${known.reverse().map(corner(lower)).join("L")}Z`;
  }

  explain() {
    const last = (values) => values.findLast((value) => value !== null) ?? null;
    const five = this.bandValues?.findLast((values) => values);
    const rows = this.alone.map((one) => ({ key: one.name, name: one.name, value: this.format(last(one.thin)), className: `tone-${one.tone ?? 1}` }));
    if (five) {
      rows.unshift(
        { key: "band:m", name: `median of ${this.series.length}`, value: this.format(five[2]), className: "tone-1" },
        { key: "band:q", name: "quartiles", value: `${this.format(five[1])} to ${this.format(five[3])}`, className: "quartiles" },
        { key: "band:e", name: "all", value: `${this.format(five[0])} to ${this.format(five[4])}`, className: "extremes" },
      );
    }
    this.legendItems.update(rows, (row) => row.key, (item, row) => {
      setText(item.name, row.name);
      setText(item.value, row.value);
      setAttribute(item.swatch, "class", row.className);
    });
    setAttribute(this.svg, "aria-label", `${this.label}: ${rows.map((row) => `${row.name} ${row.value}`).join(", ")}. Arrow keys read single moments.`);
  }

  point(x) {
    if (!this.parts?.length || !this.x) return;
    let best = 0;
    for (let i = 1; i < this.parts.length; i++) {
      if (Math.abs(this.x(this.time(i)) - x) < Math.abs(this.x(this.time(best)) - x)) best = i;
    }
    this.mark(best);
  }

  mark(i) {
    this.at = i;
    const x = this.x(this.time(i)).toFixed(1);
    const nodes = [s("line", { x1: x, x2: x, y1: TOP, y2: this.height - BOTTOM })];
    const lines = [h("b", { text: clock(this.time(i)) })];
    const five = this.bandValues?.[i];
    if (five) lines.push(`median ${this.format(five[2])}`, `quartiles ${this.format(five[1])} to ${this.format(five[3])}`, `all ${this.format(five[0])} to ${this.format(five[4])}`);
    for (const one of this.alone) {
      if (one.thin[i] === null) continue;
      nodes.push(s("circle", { cx: x, cy: this.y(one.thin[i]).toFixed(1), r: 3.5, class: `tone-${one.tone ?? 1}` }));
      lines.push(h("div", {}, h("i", { class: `tone-${one.tone ?? 1}` }), `${one.name} ${this.format(one.thin[i])}`));
    }
    this.cross.replaceChildren(...nodes);
    const box = this.svg.getBoundingClientRect();
    tip.show(box.left + Number(x), box.top + TOP, lines);
  }

  leave() {
    if (this.at === null) return;
    this.at = null;
    this.cross.replaceChildren();
    tip.hide();
  }
}

function logTicks(low, high) {
  const result = [];
  for (let power = Math.floor(Math.log10(low)); power <= Math.ceil(Math.log10(high)); power++) {
    for (const n of [1, 2, 5]) {
      const value = Number((n * 10 ** power).toPrecision(6));
      if (value >= low * 0.999 && value <= high * 1.001) result.push(value);
    }
  }
  return result.length > 6 ? result.filter((value) => /^1(e|0*$)|^0\.0*1$/.test(String(value))) : result;
}

/** A small line without axes, for a row of a table. */
export function sparkline() {
  const path = s("path", { class: "spark" });
  const root = s("svg", { class: "sparkline", viewBox: "0 0 96 22", "aria-hidden": "true", preserveAspectRatio: "none" }, path);
  const update = (values) => {
    const thin = thinned(values, pieces(values.length, 48));
    const high = 1.25 * Math.max(0, ...thin);
    let d = "";
    let isOn = false;
    thin.forEach((value, i) => {
      if (value === null) isOn = false;
      else {
        d += `${isOn ? "L" : "M"}${((i * 96) / Math.max(thin.length - 1, 1)).toFixed(1)} ${(20.5 - (19 * value) / (high || 1)).toFixed(1)}`;
        isOn = true;
      }
    });
    setAttribute(path, "d", d);
  };
  return { root, update };
}
