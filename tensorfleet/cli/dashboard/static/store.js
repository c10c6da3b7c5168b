// What the page knows of the run: the last answers, the series so far, and how the connection is.

import { ApiError, get } from "./api.js";

const NOW_MS = 1000;
const RUN_EVERY = 2; // polls of `now` between two of `run`
const DENIED_MS = 5000;
const ENDED_MS = 5000;
const KEPT_POINTS = 20_000;
const DAY = 86_400;

export class Store {
  constructor() {
    this.run = null;
    this.now = null;
    this.times = [];
    this.series = new Map(); // "loss/TAG", "steps_per_second/LABEL", "global_step" -> values at `times`
    this.connection = "loading"; // then "live", "away", "denied"
    this.problem = ""; // a sentence of the server, where it has one
    this.answeredAt = 0;
    this.window = 600; // seconds shown; DAY: everything
    this.listeners = new Set();
    this.polls = 0;
    this.reload = true; // whether the series are asked for from their beginning
  }

  /** Asks until the page is closed. */
  async poll() {
    for (;;) {
      await this.ask();
      for (const listener of this.listeners) listener();
      const isOver = this.run?.ended && this.now && this.connection === "live";
      const pause = this.connection === "denied" ? DENIED_MS : isOver ? ENDED_MS : NOW_MS;
      await new Promise((resolve) => {
        this.wake = resolve;
        setTimeout(resolve, pause);
      });
    }
  }

  async ask() {
    const wantsRun = this.polls++ % RUN_EVERY === 0 || !this.run;
    const last = this.times.at(-1);
    const isWhole = this.reload || last === undefined;
    const series = isWhole ? `series?seconds=${this.window}` : `series?since=${last}`;
    const answers = await Promise.allSettled([get("now"), get(series), wantsRun ? get("run") : this.run]);
    if (answers[0].status === "fulfilled") this.now = answers[0].value;
    if (answers[1].status === "fulfilled") this.merge(answers[1].value, isWhole);
    if (answers[2].status === "fulfilled") this.run = answers[2].value;
    this.judge(answers.filter((answer) => answer.status === "rejected").map((answer) => answer.reason));
  }

  judge(failures) {
    const unexpected = failures.find((failure) => !(failure instanceof ApiError));
    if (unexpected) console.error(unexpected);
    const kinds = failures.map((failure) => failure.kind ?? "refused");
    this.connection = kinds.includes("denied") ? "denied" : kinds.includes("away") ? "away" : "live";
    this.problem = failures.map((failure) => failure.message)[0] ?? "";
    if (this.connection === "live") this.answeredAt = Date.now();
  }

  /** Another span of time. */
  choose(seconds) {
    this.window = seconds;
    this.reload = true;
    this.wake?.();
  }

  merge({ times, series }, isWhole) {
    if (isWhole) {
      this.times = [];
      this.series.clear();
      this.reload = false;
    }
    const first = times.findIndex((time) => time > (this.times.at(-1) ?? -Infinity));
    if (first < 0) return;
    const before = this.times.length;
    for (let i = first; i < times.length; i++) this.times.push(times[i]);
    for (const [key, values] of flat(series)) {
      let known = this.series.get(key);
      if (!known) this.series.set(key, (known = new Array(before).fill(null)));
      for (let i = first; i < times.length; i++) known.push(values[i] ?? null);
    }
    const length = this.times.length;
    for (const known of this.series.values()) while (known.length < length) known.push(null);
    if (length > KEPT_POINTS * 1.2) this.forget(length - KEPT_POINTS);
  }

  forget(count) {
    this.times.splice(0, count);
    for (const values of this.series.values()) values.splice(0, count);
  }

  /** Index of the first point that is shown. */
  start() {
    if (this.window >= DAY || !this.times.length) return 0;
    const first = this.times.at(-1) - this.window;
    let low = 0;
    let high = this.times.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.times[middle] < first) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  /** Values of one series in what is shown. */
  values(key) {
    return this.series.get(key)?.slice(this.start()) ?? [];
  }

  /** Times of what is shown. */
  shown() {
    return this.times.slice(this.start());
  }

  /** Series of a kind, such as "loss": [[tag, values], ...]. */
  group(kind) {
    const prefix = `${kind}/`;
    return [...this.series.keys()].filter((key) => key.startsWith(prefix)).map((key) => [key.slice(prefix.length), this.values(key)]);
  }

  /** Tasks, with what `run` and `now` say of each. */
  tasks() {
    const now = this.now?.tasks ?? {};
    const known = this.run?.tasks ?? Object.keys(now).map((label) => ({ label, job: label.split("/")[0], index: Number(label.split("/")[1]) }));
    return known.map((task) => {
      const numbers = now[task.label] ?? {};
      // A task that died is known to `run` for certain; `now` may still tell its last numbers.
      const isOver = ["dead", "failed", "ended"].includes(task.state);
      return { ...numbers, ...task, state: isOver ? task.state : numbers.state ?? task.state, uptime_seconds: isOver ? task.uptime_seconds : numbers.uptime_seconds ?? task.uptime_seconds };
    });
  }

  task(label) {
    return this.tasks().find((task) => task.label === label);
  }
}

function* flat(series) {
  for (const [kind, values] of Object.entries(series ?? {})) {
    if (Array.isArray(values)) yield [kind, values];
    else for (const [label, inner] of Object.entries(values ?? {})) yield [`${kind}/${label}`, inner];
  }
}
