// The table of tasks: those that need attention first, and a filter.

import { sparkline } from "../charts/lines.js";
import { Keyed, h, panel, setAttribute, setText } from "../dom.js";
import { byteRate, bytes, duration, inPath, si } from "../format.js";

const FAILED = ["dead", "failed"];
const SPARK_POINTS = 120;
const RESORT_MS = 5000;

const COLUMNS = [
  { key: "label", name: "Task" },
  { key: "state", name: "State", className: "wide" },
  { key: "rate", name: "Rate", number: true },
  { key: "trend", name: "Last 2 min", className: "spark-column", fixed: true },
  { key: "memory_bytes", name: "Memory", number: true },
  { key: "cpu_percent", name: "CPU", number: true, className: "wide" },
  { key: "network", name: "Network", number: true, className: "wide" },
  { key: "uptime_seconds", name: "Uptime", number: true, className: "wide" },
];

/** What makes a task come first: 0 is the most urgent. */
function urgency(task) {
  if (FAILED.includes(task.state)) return 0;
  if (task.state === "silent") return 1;
  if (task.is_straggler) return 2;
  return task.isHot ? 3 : task.last_error ? 4 : 5;
}

const rateOf = (task) => task.steps_per_second ?? task.updates_per_second ?? null;
const valueOf = {
  label: (task) => task.order,
  state: (task) => task.state,
  rate: rateOf,
  network: (task) => (task.sent_bytes_per_second ?? 0) + (task.received_bytes_per_second ?? 0),
};

export function errorText(error) {
  return typeof error === "string" ? error : error?.text ?? "";
}

export class TasksTable {
  constructor() {
    this.sortKey = null;
    this.descending = true;
    this.sortedAt = 0;
    this.order = [];
    this.filter = h("input", { type: "search", class: "field", placeholder: "Filter: name, dead, slow", "aria-label": "Filter the tasks", oninput: () => this.draw(true) });
    this.box = panel("Tasks", { className: "tasks", actions: [this.filter] });
    this.headers = COLUMNS.map((column) => this.header(column));
    const head = h("thead", {}, h("tr", {}, ...this.headers.map(({ cell }) => cell)));
    this.table = h("table", { class: "table tasks-table" }, head);
    this.none = h("p", { class: "empty-line" });
    this.scroll = h("div", { class: "table-scroll", tabindex: 0, role: "region", "aria-label": "Tasks" }, this.table, this.none);
    this.box.body.append(this.scroll);
    this.rows = new Keyed(this.table, () => taskRow(), 1); // after the head
    this.root = this.box.root;
  }

  header(column) {
    const className = [column.number ? "number" : "", column.className ?? ""].join(" ").trim();
    if (column.fixed) return { column, cell: h("th", { scope: "col", class: className, text: column.name }) };
    const button = h("button", { type: "button", class: "sort", text: column.name, onclick: () => this.sortBy(column.key) });
    return { column, cell: h("th", { scope: "col", class: className }, button) };
  }

  sortBy(key) {
    if (this.sortKey !== key) [this.sortKey, this.descending] = [key, key !== "label" && key !== "state"];
    else if (this.descending === (key !== "label" && key !== "state")) this.descending = !this.descending;
    else this.sortKey = null; // the third press: attention first again
    for (const { column, cell } of this.headers) {
      setAttribute(cell, "aria-sort", column.key === this.sortKey ? (this.descending ? "descending" : "ascending") : null);
    }
    this.draw(true);
  }

  update(store) {
    this.store = store;
    this.draw(false);
  }

  draw(isAsked) {
    if (!this.store) return;
    const hot = this.store.now?.servers?.hottest_to_mean > 1.3 ? this.store.now.servers.hottest : null;
    const tasks = this.store.tasks().map((task, order) => ({ ...task, order, isHot: task.label === hot }));
    const words = this.filter.value.toLowerCase().split(/[\s,]+/).filter(Boolean);
    const shown = tasks.filter((task) => words.every((word) => haystack(task).includes(word)));
    this.box.note(words.length ? `${shown.length} of ${tasks.length}` : counts(tasks));
    setText(this.none, tasks.length ? "No task matches." : "No tasks yet.");
    this.none.hidden = shown.length > 0;
    this.sort(shown, isAsked);
    this.rows.update(shown, (task) => task.label, (row, task) => row.update(task, this.spark(task)));
  }

  sort(tasks, isAsked) {
    // A row must not run away from the pointer: columns of numbers are sorted again now and then only.
    const isHeld = this.scroll.matches(":hover, :focus-within");
    const isDue = isAsked || !this.sortKey || (Date.now() - this.sortedAt > RESORT_MS && !isHeld);
    if (!isDue) {
      const place = new Map(this.order.map((label, i) => [label, i]));
      tasks.sort((a, b) => (place.get(a.label) ?? 1e9) - (place.get(b.label) ?? 1e9));
      return;
    }
    const value = valueOf[this.sortKey] ?? ((task) => task[this.sortKey]);
    const sign = this.descending ? -1 : 1;
    tasks.sort((a, b) => {
      if (!this.sortKey) return urgency(a) - urgency(b) || a.order - b.order;
      const [left, right] = [value(a), value(b)];
      if (left === right) return a.order - b.order;
      return left === null || left === undefined ? 1 : right === null || right === undefined ? -1 : left < right ? -sign : sign;
    });
    this.order = tasks.map((task) => task.label);
    this.sortedAt = Date.now();
  }

  spark(task) {
    const { series } = this.store;
    const values = series.get(`steps_per_second/${task.label}`) ?? series.get(`server_bytes_per_second/${task.label}`) ?? [];
    return values.slice(-SPARK_POINTS);
  }
}

const haystack = (task) => `${task.label} ${task.state} ${task.host ?? ""} ${task.is_straggler ? "slow straggler" : ""} ${task.isHot ? "hot" : ""}`.toLowerCase();

function counts(tasks) {
  const sums = new Map();
  for (const task of tasks) sums.set(task.state, (sums.get(task.state) ?? 0) + 1);
  return [...sums].map(([state, count]) => `${count} ${state}`).join(", ");
}

function taskRow() {
  const link = h("a", { class: "task-link" });
  const tag = h("span", { class: "tag" });
  const state = stateDot();
  const wideState = stateDot();
  const rate = h("td", { class: "number" });
  const rateValue = h("b");
  const rateUnit = h("span", { class: "unit" });
  rate.append(rateValue, rateUnit);
  const spark = sparkline();
  const memory = h("td", { class: "number" });
  const cpu = h("td", { class: "number wide" });
  const network = h("td", { class: "number wide" });
  const uptime = h("td", { class: "number wide" });
  const words = h("div", { class: "last-words mono" });
  const error = h("div", { class: "task-error" });
  // One tbody is one task: its numbers, and below them its last words or error.
  const first = h("td", { class: "task-cell" }, h("span", { class: "narrow" }, state.root), link, tag);
  const line = h("tr", {}, first, h("td", { class: "wide" }, wideState.root), rate, h("td", { class: "spark-column" }, spark.root), memory, cpu, network, uptime);
  const more = h("tr", { class: "more" }, h("td", { colspan: COLUMNS.length }, words, error));
  more.hidden = true;
  return new Row({ root: h("tbody", {}, line, more), line, more, link, tag, state, wideState, rateValue, rateUnit, spark, memory, cpu, network, uptime, words, error });
}

export function stateDot() {
  const text = h("span", { class: "state-text" });
  const root = h("span", { class: "state" }, h("i", { class: "dot", "aria-hidden": "true" }), text);
  return {
    root,
    update(state, words = state ?? "starting") {
      setAttribute(root, "class", `state ${state ?? "starting"}`);
      setText(text, words);
    },
  };
}

class Row {
  constructor(parts) {
    Object.assign(this, parts);
  }

  update(task, values) {
    const isDead = FAILED.includes(task.state);
    setText(this.link, task.label);
    setAttribute(this.link, "href", `#/task/${inPath(task.label)}`);
    setText(this.tag, task.is_straggler ? "slow" : task.isHot ? "hot" : "");
    this.tag.hidden = !task.is_straggler && !task.isHot;
    setAttribute(this.tag, "class", `tag ${task.is_straggler ? "slow" : "hot"}`);
    this.state.update(task.state);
    this.wideState.update(task.state);
    setAttribute(this.line, "class", `task ${task.state} ${task.is_straggler ? "straggler" : ""}`.trim());
    setAttribute(this.line, "data-task", task.label);
    const isStep = task.steps_per_second !== null && task.steps_per_second !== undefined;
    setText(this.rateValue, si(rateOf(task)));
    setText(this.rateUnit, rateOf(task) === null ? "" : isStep ? " steps/s" : " updates/s");
    this.spark.update(values);
    setText(this.memory, bytes(task.memory_bytes));
    setText(this.cpu, task.cpu_percent === null || task.cpu_percent === undefined ? "–" : `${Math.round(task.cpu_percent)}\u00a0%`);
    setText(this.network, isDead ? "–" : byteRate(valueOf.network(task)));
    setText(this.uptime, duration(task.uptime_seconds));
    setText(this.words, isDead ? (task.last_words ?? []).slice(-3).join("\n") : "");
    setText(this.error, !isDead && urgency(task) <= 4 ? errorText(task.last_error) : "");
    this.more.hidden = !this.words.textContent && !this.error.textContent;
  }
}
