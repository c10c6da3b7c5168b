// The first screen: everything that says how the run is, without a click.

import { BarList, Columns, histogram } from "../charts/bars.js";
import { LineChart, MANY } from "../charts/lines.js";
import { Matrix } from "../charts/matrix.js";
import { median } from "../charts/scale.js";
import { Keyed, h, panel, setAttribute, setText, withCode } from "../dom.js";
import { byteRate, clock, duration, inPath, percent, plain, si, whole } from "../format.js";
import { findingsPanel } from "./findings.js";
import { TasksTable } from "./tasks_table.js";

// The last is the time from the end of a step to the beginning of the next.
const PARTS = ["input", "pull", "compute", "push", "wait", "between"];
const NAMES = { between: "outside sess.run" };
const WORST_STEPS = 9; // workers whose step is shown, of many
const SMALL_HISTOGRAMS = 6;
const QUEUES = 8;
const FLOWS = 3;
const MAX_LINKS = 1000; // that the server tells: with 200 tasks there may be more
const MAX_TAGS = 5; // curves in one chart of losses

export function overview() {
  const boxes = { findings: findingsPanel(), tasks: new TasksTable(), step: steps(), traffic: traffic(), progress: progress(), loss: losses(), load: load(), events: events(), staleness: staleness(), queues: queues() };
  const [left, right] = [h("div", { class: "column" }), h("div", { class: "column" })];
  const below = h("div", { class: "below" });
  const root = h("div", { class: "overview" }, left, right, below);
  let isMany = null;

  // The table of many tasks is as high as three charts; below that of a few there is room for more.
  function arrange(next) {
    if (next === isMany) return;
    isMany = next;
    const place = (box, names) => box.replaceChildren(...names.map((name) => boxes[name].root));
    place(left, isMany ? ["findings", "tasks"] : ["findings", "tasks", "step", "traffic"]);
    place(right, ["progress", "loss", "load", "events"]);
    place(below, isMany ? ["step", "traffic", "staleness", "queues"] : ["staleness", "queues"]);
  }

  return {
    root,
    update(store) {
      arrange(store.tasks().length > MANY);
      for (const box of Object.values(boxes)) box.update(store);
    },
  };
}

function progress() {
  const box = panel("Progress", { className: "half" });
  const step = new LineChart({ label: "Global step", format: (value) => si(value), height: 104 });
  const rate = new LineChart({ label: "Steps per second of each worker", format: (value) => si(value), height: 124, zero: true });
  box.body.append(h("h3", { text: "Global step" }), step.root, h("h3", { text: "Steps/s by worker" }), rate.root);
  return {
    root: box.root,
    update(store) {
      step.update(store.shown(), [{ name: "global step", values: store.values("global_step"), tone: 4 }]);
      rates(rate, store, "steps_per_second", store.tasks().filter((task) => task.is_straggler).map((task) => task.label));
    },
  };
}

/** One line for each task, or a band with the notable ones apart. */
export function rates(chart, store, kind, notable = []) {
  const series = store.group(kind).map(([name, values], i) => ({ name, values, tone: notable.includes(name) ? 3 : [1, 2, 4, 5, 6][i % 5] }));
  const isMany = series.length > MANY;
  const apart = isMany ? series.filter((one) => notable.includes(one.name)).slice(0, 3).map((one, i) => ({ ...one, tone: [3, 5, 4][i] })) : [];
  chart.update(store.shown(), series, { band: isMany, apart });
}

function losses() {
  const toggle = h("button", { type: "button", class: "small", text: "log", "aria-pressed": "false", title: "Logarithmic axis" });
  const box = panel("Loss", { actions: [toggle] });
  const chart = new LineChart({ label: "Scalar summaries", format: plain, height: 150 });
  const choice = h("select", { class: "field", "aria-label": "Summaries shown" });
  const noSummaries = "No scalar summaries. The curves come from tf.summary.scalar.";
  box.body.append(choice, chart.root);
  choice.hidden = true;
  let tags = "";
  toggle.addEventListener("click", () => {
    chart.logarithmic = !chart.logarithmic;
    setAttribute(toggle, "aria-pressed", String(chart.logarithmic));
    chart.draw();
  });
  const offer = (names) => {
    tags = names.join("\n");
    choice.hidden = names.length <= MAX_TAGS;
    choice.replaceChildren(h("option", { value: "", text: `first ${MAX_TAGS} of ${names.length}` }), ...names.map((name) => h("option", { value: name, text: name })));
  };
  return {
    root: box.root,
    update(store) {
      // Losses before all else: they are what one looks for.
      const all = store.group("loss").sort(([a], [b]) => Number(/loss/i.test(b)) - Number(/loss/i.test(a)));
      if (all.map(([name]) => name).join("\n") !== tags) offer(all.map(([name]) => name));
      const shown = all.filter(([name]) => (choice.value ? name === choice.value : true)).slice(0, MAX_TAGS);
      setText(chart.none, store.times.length ? noSummaries : "No data yet");
      chart.update(store.shown(), shown.map(([name, values], i) => ({ name, values, tone: [1, 2, 3, 4, 5][i] })));
    },
  };
}

function load() {
  const ratio = h("b", { class: "big" });
  const words = h("span", { class: "muted" });
  const box = panel("Server load", {}, h("p", { class: "ratio" }, ratio, words));
  const list = new BarList("Bytes per second of each server");
  const columns = new Columns("Bytes per second of each server", byteRate, 92);
  box.body.append(list.root, columns.root);
  return {
    root: box.root,
    update(store) {
      const { load: loads = {}, hottest, hottest_to_mean: factor } = store.now?.servers ?? {};
      const rows = Object.entries(loads).sort((a, b) => b[1] - a[1]);
      const mean = rows.reduce((sum, [, value]) => sum + value, 0) / (rows.length || 1);
      const most = Math.max(rows[0]?.[1] ?? 0, 1e-9);
      const isHot = (label) => label === hottest && factor > 1.3;
      setText(ratio, factor ? `${factor.toFixed(2)} ×` : "–");
      setAttribute(ratio, "class", `big ${factor > 1.3 ? "hot" : ""}`);
      setText(words, factor ? ` hottest to mean: ${hottest} carries ${byteRate(loads[hottest])} of ${byteRate(mean * rows.length)}` : rows.length ? " one server carries all" : " No server has traffic.");
      list.root.hidden = rows.length > MANY;
      columns.root.hidden = rows.length <= MANY;
      if (rows.length > MANY) {
        columns.update(rows.map(([name, value]) => ({ name, value, className: isHot(name) ? "column hot" : "column" })), mean);
        return;
      }
      list.update(rows.map(([label, value]) => ({
        key: label, name: label, href: `#/task/${inPath(label)}`, value: byteRate(value), mark: rows.length > 1 ? mean / most : undefined,
        className: isHot(label) ? "hot" : "", about: `${label}: ${byteRate(value)}`,
        parts: [{ name: "load", fraction: value / most, className: "load" }],
        tip: () => [label, byteRate(value), `${(value / (mean || 1)).toFixed(2)} × the mean of ${byteRate(mean)}`],
      })));
    },
  };
}

export function partsLegend() {
  return h("ul", { class: "legend" }, ...PARTS.map((part) => h("li", {}, h("i", { class: `part-${part}` }), h("span", { text: NAMES[part] ?? part }))));
}

/** The time from step to step of a task, by part: fractions whose sum is 1. */
export function stepShares(task) {
  const between = task.between_fraction ?? 0;
  return Object.fromEntries(PARTS.map((part) => [part, part === "between" ? between : (task.parts?.[part] ?? 0) * (1 - between)]));
}

/** The row of bars for one worker's step. */
export function stepRow(key, name, fractions, seconds, { href, className } = {}) {
  const shown = PARTS.map((part) => ({ name: part, fraction: fractions[part] ?? 0, className: `part-${part}` }));
  const about = PARTS.map((part) => `${NAMES[part] ?? part} ${percent(fractions[part] ?? 0)}`);
  return { key, name, href, className, value: duration(seconds), parts: shown, about: about.join(", "), tip: () => [h("b", { text: name }), ...about] };
}

function steps() {
  const box = panel("A worker's step", { className: "third" }, partsLegend());
  const list = new BarList("Parts of the step of each worker");
  const none = h("p", { class: "empty-line", text: "No worker is taking steps." });
  box.body.append(list.root, none);
  return {
    root: box.root,
    update(store) {
      const workers = store.tasks().filter((task) => Object.keys(task.parts ?? {}).length);
      none.hidden = workers.length > 0;
      const rows = workers.map((task) => ({ task, shares: stepShares(task) }));
      const isMany = rows.length > MANY;
      const mean = Object.fromEntries(PARTS.map((part) => [part, rows.reduce((sum, { shares }) => sum + shares[part], 0) / rows.length]));
      // Of many, those whose step is most unlike the mean; ties keep their order.
      const unlike = ({ task, shares }) => Number(Boolean(task.is_straggler)) * 10 + Math.round(4 * PARTS.reduce((sum, part) => sum + Math.abs(shares[part] - mean[part]), 0));
      const chosen = isMany ? [...rows].sort((a, b) => unlike(b) - unlike(a)).slice(0, WORST_STEPS) : rows;
      const shown = chosen.map(({ task, shares }) => stepRow(task.label, task.label, shares, task.seconds_per_step, { href: `#/task/${inPath(task.label)}`, className: task.is_straggler ? "slow" : "" }));
      if (isMany) shown.unshift(stepRow("mean", `mean of ${rows.length}`, mean, median(workers.map((task) => task.seconds_per_step)), { className: "mean" }));
      box.note(isMany ? `from step to step; the ${WORST_STEPS} most unlike the mean` : "where the time from step to step goes");
      list.update(shown);
    },
  };
}

function traffic() {
  const box = panel("Traffic", { className: "third", note: "bytes/s between tasks" });
  const table = h("ol", { class: "flows" });
  const matrix = new Matrix({ label: "Traffic between tasks", write: byteRate, tell: (r, c, value) => [h("b", { text: `${matrix.columns[c]} and ${matrix.rows[r]}` }), byteRate(value)] });
  const none = h("p", { class: "empty-line", text: "Nothing is being sent." });
  const items = new Keyed(table, () => h("li"));
  box.body.append(matrix.root, none, table);
  return {
    root: box.root,
    update(store) {
      const flows = store.now?.traffic ?? [];
      none.hidden = flows.length > 0;
      matrix.root.hidden = flows.length === 0;
      const largest = [...flows].sort((a, b) => b.bytes_per_second - a.bytes_per_second).slice(0, FLOWS);
      items.update(largest, (flow) => `${flow.from}>${flow.to}`, (node, flow) => setText(node, `${flow.from} → ${flow.to}  ${byteRate(flow.bytes_per_second)}`));
      if (!flows.length) return;
      const order = new Map(store.tasks().map((task, i) => [task.label, i]));
      const names = (side) => [...new Set(flows.map((flow) => flow[side]))].sort((a, b) => (order.get(a) ?? 1e9) - (order.get(b) ?? 1e9));
      const [rows, columns] = [names("to"), names("from")];
      const at = { row: new Map(rows.map((name, i) => [name, i])), column: new Map(columns.map((name, i) => [name, i])) };
      const values = rows.map(() => new Array(columns.length).fill(0));
      let sum = 0;
      for (const flow of flows) {
        values[at.row.get(flow.to)][at.column.get(flow.from)] += flow.bytes_per_second ?? 0;
        sum += flow.bytes_per_second ?? 0;
      }
      box.note(`${byteRate(sum)} ${flows.length === MAX_LINKS ? `in the ${whole(MAX_LINKS)} largest` : "in all"}; columns ask rows`);
      matrix.update(rows, columns, values, `${rows.length} by ${columns.length} tasks.`);
    },
  };
}

function staleness() {
  const box = panel("Staleness", { className: "third", note: "updates that a gradient missed" });
  const list = h("ul", { class: "histograms" });
  const matrix = new Matrix({ label: "Staleness by worker", height: 200, tell: (r, c, value) => [h("b", { text: matrix.columns[c] }), `stale by ${matrix.rows[r]}: ${percent(value)}`] });
  const none = h("p", { class: "empty-line", text: "No gradients yet: asynchronous steps that read variables of servers and update them are counted." });
  box.body.append(list, matrix.root, none);
  const items = new Keyed(list, () => {
    const name = h("span", { class: "histogram-name" });
    const about = h("span", { class: "muted" });
    const place = h("div", { class: "histogram-place" });
    return { root: h("li", {}, h("div", { class: "histogram-head" }, name, about), place), name, about, place, text: "" };
  });
  return {
    root: box.root,
    update(store) {
      const all = store.now?.staleness ?? [];
      none.hidden = all.length > 0;
      const isMany = all.length > SMALL_HISTOGRAMS;
      list.hidden = isMany || !all.length;
      matrix.root.hidden = !isMany;
      if (isMany) return heat(matrix, all);
      items.update(all, (one) => one.worker, (item, one) => {
        const text = JSON.stringify(one);
        if (text === item.text) return;
        item.text = text;
        const drawn = histogram(one.counts, `Staleness of ${one.worker}`);
        setText(item.name, one.worker);
        setText(item.about, `mean ${drawn.mean.toFixed(1)}, up to ${Math.max(0, ...Object.keys(one.counts).map(Number))}${one.dropped ? `, ${whole(one.dropped)} dropped` : ""}`);
        item.place.replaceChildren(drawn.svg);
      });
    },
  };
}

function heat(matrix, all) {
  const last = Math.max(1, ...all.flatMap((one) => Object.keys(one.counts).map(Number)));
  const size = Math.ceil((last + 1) / 20);
  const bins = Math.ceil((last + 1) / size);
  const names = Array.from({ length: bins }, (_, i) => (size > 1 ? `${i * size}–${i * size + size - 1}` : `${i}`));
  const values = names.map(() => new Array(all.length).fill(0));
  all.forEach((one, c) => {
    const sum = Object.values(one.counts).reduce((a, b) => a + b, 0) || 1;
    for (const [stale, count] of Object.entries(one.counts)) values[Math.floor(Number(stale) / size)][c] += count / sum;
  });
  matrix.update(names, all.map((one) => one.worker), values, `Up to ${last} updates.`);
}

const waits = (queue, kind) => queue[`${kind}_waits`] ?? null;

export function queues() {
  const box = panel("Queues", { className: "third" });
  const list = new BarList("Fill of each queue");
  const none = h("p", { class: "empty-line", text: "No queues in this run." });
  box.body.append(list.root, none);
  return {
    root: box.root,
    update(store) {
      const all = store.now?.queues ?? [];
      none.hidden = all.length > 0;
      // Those that somebody waits at come first; halves of a second do not change the order.
      const urgency = (queue) => Math.round(4 * Math.max(waits(queue, "dequeue") ?? 0, 0)) + (queue.size === 0 ? 0.5 : 0);
      const shown = [...all].sort((a, b) => urgency(b) - urgency(a)).slice(0, QUEUES);
      box.note(all.length > QUEUES ? `${QUEUES} of ${all.length}, those waited for first` : "");
      list.update(shown.map((queue) => {
        const taken = waits(queue, "dequeue");
        const isStarved = taken > 0.3;
        return {
          key: `${queue.task} ${queue.name}`, name: `${queue.task} ${queue.name}`, className: isStarved ? "slow queue" : "queue",
          value: queue.capacity ? `${queue.size} of ${whole(queue.capacity)}` : whole(queue.size),
          about: `${queue.name} of ${queue.task}: ${queue.size} of ${queue.capacity ?? "any number"}`,
          parts: [{ name: "fill", fraction: Math.min(1, queue.capacity ? queue.size / queue.capacity : queue.size ? 1 : 0), className: "load" }],
          tip: () => [h("b", { text: queue.name }), queue.kind ?? "", `takers wait ${percent(taken)} of the time`, `givers wait ${percent(waits(queue, "enqueue"))} of the time`],
        };
      }));
    },
  };
}

function events() {
  const box = panel("Events", { className: "third events-panel" });
  const list = h("ol", { class: "events" });
  const none = h("p", { class: "empty-line", text: "Nothing has happened yet." });
  box.body.append(list, none);
  const items = new Keyed(list, (event) => h("li", {}, h("time", { text: clock(event.time) }), h("span", {}, ...withCode(["finding", "decision"].includes(event.kind) ? event.text : event.task ? `${event.task}: ${event.text}` : `The run ${event.text}`))));
  return {
    root: box.root,
    update(store) {
      const all = (store.run?.events ?? []).slice(-12).reverse();
      none.hidden = all.length > 0;
      items.update(all, (event) => `${event.time} ${event.task} ${event.text}`);
    },
  };
}
