// The lanes of a Chrome trace on a canvas: a row for each task and thread, boxes for what it did.

import { colour, h, setAttribute, tip } from "../dom.js";
import { bytes, duration } from "../format.js";
import { ticks } from "./scale.js";

const ROW = 20;
const HEAD = 22;
const MOVE = 0.15; // of the shown time, for each press of an arrow key
const ARROW_PIXELS = 12; // of width for each arrow: closer together they would hide the lanes
const TONES = ["--part-compute", "--part-pull", "--part-push", "--part-input", "--c5", "--c6"];
// What an event is, by its category or the first word of its name.
const KNOWN = { stage: 0, compute: 0, segment: 0, pull: 1, receive: 1, push: 2, send: 2, input: 3, op: 4, wait: 5, waits: 5 };

function toneOf(event) {
  const word = event.name.split(/[ :/]/)[0].toLowerCase();
  return KNOWN[event.category] ?? KNOWN[word] ?? hash(event.name) % TONES.length;
}

/**
 * A Chrome trace as lanes [{name, events: [{name, category, start, length, args}]}] and arrows [{from, to}] between
 * moments {lane, time}; times are microseconds from the first.
 */
export function lanesOf(trace) {
  const events = trace.traceEvents ?? (Array.isArray(trace) ? trace : []);
  const names = new Map();
  const threads = new Map();
  const tracks = new Map();
  const flows = new Map();
  const keyOf = (event) => `${event.pid}:${event.tid}`;
  for (const event of events) {
    if (event.ph === "M" && event.name === "process_name") names.set(event.pid, event.args?.name);
    else if (event.ph === "M" && event.name === "thread_name") threads.set(keyOf(event), event.args?.name);
    else if (event.ph === "X") {
      if (!tracks.has(keyOf(event))) tracks.set(keyOf(event), { pid: event.pid, tid: event.tid, events: [] });
      tracks.get(keyOf(event)).events.push({ name: event.name ?? "", category: event.cat, start: event.ts, length: event.dur ?? 0, args: event.args ?? {} });
    } else if (event.ph === "s" || event.ph === "f") {
      if (!flows.has(event.id)) flows.set(event.id, {});
      flows.get(event.id)[event.ph === "s" ? "from" : "to"] = { track: keyOf(event), time: event.ts };
    }
  }
  const all = [...tracks.values()].flatMap((track) => track.events);
  const first = all.reduce((least, event) => Math.min(least, event.start), Infinity);
  for (const event of all) event.start -= first;
  const lanes = rowsOf(tracks, names, threads);
  const place = new Map(lanes.map((lane, i) => [lane.track, i]).reverse()); // the first row of each track
  const arrows = [...flows.values()].filter(({ from, to }) => from && to && place.has(from.track) && place.has(to.track))
    .map(({ from, to }) => ({ from: { lane: place.get(from.track), time: from.time - first }, to: { lane: place.get(to.track), time: to.time - first } }));
  return { lanes, arrows, length: all.reduce((most, event) => Math.max(most, event.start + event.length), 0), count: all.length };
}

function rowsOf(tracks, names, threads) {
  const result = [...tracks].flatMap(([track, one]) => {
    const process = names.get(one.pid) ?? `process ${one.pid}`;
    return nested(one.events).map((events, depth) => ({ track, process, thread: depth ? "" : threads.get(track) ?? "", events, order: [one.tid, depth] }));
  });
  result.sort((a, b) => a.process.localeCompare(b.process, undefined, { numeric: true }) || a.order[0] - b.order[0] || a.order[1] - b.order[1]);
  // The task stands before its first row: "ps/0 (host, pid 7)" is "ps/0".
  result.forEach((lane, i) => (lane.name = i && result[i - 1].process === lane.process ? "" : lane.process.replace(/ \(.*/, "")));
  return result;
}

// Events within events of one thread stand in rows below them.
function nested(events) {
  const rows = [];
  for (const event of events.sort((a, b) => a.start - b.start || b.length - a.length)) {
    let row = rows.find((own) => own.at(-1).start + own.at(-1).length <= event.start + 0.5);
    if (!row) rows.push((row = []));
    row.push(event);
  }
  return rows;
}

export class Lanes {
  constructor() {
    this.canvas = h("canvas", { class: "lanes", role: "img", tabindex: 0 });
    this.root = h("div", { class: "lanes-box" }, this.canvas);
    this.from = 0;
    this.until = 1;
    new ResizeObserver(() => this.draw()).observe(this.root);
    addEventListener("themechange", () => this.draw());
    this.canvas.addEventListener("pointermove", (event) => (event.buttons ? this.drag(event) : this.point(event)));
    this.canvas.addEventListener("pointerleave", () => tip.hide());
    this.canvas.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    this.canvas.addEventListener("keydown", (event) => this.key(event));
  }

  show(trace) {
    Object.assign(this, lanesOf(trace));
    setAttribute(this.canvas, "aria-label", `Timeline of ${this.lanes.length} lanes over ${duration(this.length / 1e6)}, with ${this.arrows.length} transfers. Plus and minus zoom, arrow keys move.`);
    this.fit();
  }

  fit() {
    [this.from, this.until] = [0, this.length || 1];
    this.draw();
  }

  zoom(factor, middle = (this.from + this.until) / 2) {
    const size = Math.min(this.length || 1, Math.max(5, (this.until - this.from) * factor));
    const share = (middle - this.from) / (this.until - this.from);
    this.move(middle - share * size, size);
  }

  move(from, size = this.until - this.from) {
    this.from = Math.max(0, Math.min(from, (this.length || 1) - size));
    this.until = this.from + size;
    this.draw();
  }

  key(event) {
    const size = this.until - this.from;
    const act = { "+": () => this.zoom(0.6), "=": () => this.zoom(0.6), "-": () => this.zoom(1.7), 0: () => this.fit(), ArrowLeft: () => this.move(this.from - MOVE * size), ArrowRight: () => this.move(this.from + MOVE * size) }[event.key];
    if (!act) return;
    event.preventDefault();
    act();
  }

  wheel(event) {
    if (!event.ctrlKey && !event.shiftKey) return; // the page scrolls
    event.preventDefault();
    this.zoom(event.deltaY < 0 ? 0.8 : 1.25, this.time(event.clientX));
  }

  drag(event) {
    this.move(this.from - (event.movementX * (this.until - this.from)) / this.span());
  }

  span() {
    return this.root.clientWidth - this.left;
  }

  time(clientX) {
    const x = clientX - this.canvas.getBoundingClientRect().left - this.left;
    return this.from + (x * (this.until - this.from)) / this.span();
  }

  draw() {
    const width = this.root.clientWidth;
    if (!width || !this.lanes) return;
    this.left = width < 600 ? 70 : 96;
    const height = HEAD + ROW * this.lanes.length + 4;
    const ratio = Math.min(devicePixelRatio || 1, 16_000 / height);
    this.canvas.width = Math.round(width * ratio);
    this.canvas.height = Math.round(height * ratio);
    this.canvas.style.height = `${height}px`;
    const context = this.canvas.getContext("2d");
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.font = `11.5px ${getComputedStyle(this.canvas).fontFamily}`;
    context.textBaseline = "middle";
    const x = (time) => this.left + ((time - this.from) * this.span()) / (this.until - this.from);
    const [grid, muted, text] = ["--grid", "--muted", "--surface"].map(colour);
    const tones = TONES.map(colour);
    const marks = ticks(this.from, this.until, Math.max(2, Math.floor(width / 130)));
    const step = (marks[1] ?? this.until) - marks[0];
    for (const tick of marks) {
      context.fillStyle = grid;
      context.fillRect(x(tick), HEAD - 4, 1, height);
      context.fillStyle = muted;
      if (x(tick) < width - 40) context.fillText(axisTime(tick, step), x(tick) + 3, 9);
    }
    this.lanes.forEach((lane, i) => {
      const y = HEAD + i * ROW;
      if (lane.name && i) {
        context.fillStyle = grid;
        context.fillRect(0, y, width, 1);
      }
      context.fillStyle = muted;
      context.fillText(clip(context, lane.name, this.left - 10), 2, y + ROW / 2);
      context.save();
      context.beginPath();
      context.rect(this.left, y, this.span(), ROW);
      context.clip();
      for (const event of lane.events) {
        const [begin, end] = [x(event.start), x(event.start + event.length)];
        if (end < this.left || begin > width) continue;
        context.fillStyle = tones[toneOf(event)];
        context.fillRect(begin, y + 1.5, Math.max(0.8, end - begin - 0.5), ROW - 3);
        if (end - begin > 26) {
          context.fillStyle = text;
          context.fillText(clip(context, event.name, end - Math.max(begin, this.left) - 6), Math.max(begin, this.left) + 4, y + ROW / 2);
        }
      }
      context.restore();
    });
    this.drawArrows(context, x, width);
  }

  drawArrows(context, x, width) {
    const shown = this.arrows.filter(({ from, to }) => x(to.time) > this.left && x(from.time) < width);
    if (shown.length * ARROW_PIXELS > this.span()) return;
    const y = (lane) => HEAD + lane * ROW + ROW / 2;
    context.save();
    context.beginPath();
    context.rect(this.left, HEAD, this.span(), ROW * this.lanes.length);
    context.clip();
    context.strokeStyle = context.fillStyle = colour("--text");
    context.globalAlpha = 0.55;
    context.beginPath();
    for (const { from, to } of shown) {
      context.moveTo(x(from.time), y(from.lane));
      context.lineTo(x(to.time), y(to.lane));
    }
    context.stroke();
    for (const { to } of shown) context.fillRect(x(to.time) - 1.5, y(to.lane) - 1.5, 3, 3);
    context.restore();
  }

  point(event) {
    const lane = this.lanes?.[Math.floor((event.clientY - this.canvas.getBoundingClientRect().top - HEAD) / ROW)];
    const time = this.time(event.clientX);
    const slack = (2 * (this.until - this.from)) / this.span();
    const hit = lane?.events.find((one) => one.start - slack <= time && time <= one.start + one.length + slack);
    if (!hit) return tip.hide();
    const told = Object.entries(hit.args).filter(([, value]) => value !== null && value !== "" && !(Array.isArray(value) && !value.length));
    const more = told.slice(0, 8).map(([name, value]) => `${name}: ${name === "bytes" ? bytes(value) : typeof value === "object" ? JSON.stringify(value) : value}`);
    tip.show(event.clientX, event.clientY, [h("b", { text: hit.name }), [lane.process, lane.thread].filter(Boolean).join(", "), duration(hit.length / 1e6), ...more]);
  }
}

// With as many digits as tell two marks apart: 1,034 ms and not 1.0 s.
function axisTime(time, step) {
  const [size, unit] = [[1e6, "s"], [1e3, "ms"]].find(([size]) => step >= size) ?? [1, "µs"];
  return `${Number((time / size).toPrecision(9)).toLocaleString("en-US")}\u00a0${unit}`;
}

function clip(context, text, width) {
  if (context.measureText(text).width <= width) return text;
  let end = Math.max(0, Math.floor(width / 6.4));
  while (end > 0 && context.measureText(`${text.slice(0, end)}…`).width > width) end--;
  return end ? `${text.slice(0, end)}…` : "";
}

function hash(text) {
  let result = 7;
  for (let i = 0; i < text.length; i++) result = (result * 31 + text.charCodeAt(i)) >>> 0;
  return result;
}
