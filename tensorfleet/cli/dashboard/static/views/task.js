// One task: its numbers, what its threads are in, where its time goes, its log.

import { download, post } from "../api.js";
import { BarList } from "../charts/bars.js";
import { flameGraph, mergedCalls } from "../charts/flame.js";
import { LineChart } from "../charts/lines.js";
import { empty, h, panel, setAttribute, setText } from "../dom.js";
import { byteRate, bytes, duration, inPath, percent, plain, si, whole } from "../format.js";
import { asking, taskChoice } from "./asking.js";
import { logLines } from "./logs.js";
import { partsLegend, stepRow, stepShares } from "./overview.js";
import { errorText, stateDot } from "./tasks_table.js";

const CHARTS = [
  ["steps_per_second", "Steps per second", (value) => si(value)],
  ["server_bytes_per_second", "Bytes per second that others ask for", byteRate],
  ["cpu_percent", "CPU", (value) => `${Math.round(value)}\u00a0%`],
  ["memory_bytes", "Memory", bytes],
];

export function taskPage(store) {
  let label = "";
  const choice = taskChoice("Task", () => (location.hash = `#/task/${inPath(choice.value)}`));
  const state = stateDot();
  const facts = h("dl", { class: "facts task-facts" });
  const words = h("pre", { class: "words" });
  const step = new BarList("Parts of the step");
  const legend = partsLegend();
  const head = panel("Task", { className: "full", actions: [choice.root] }, h("div", { class: "task-state" }, state.root), facts, legend, step.root, words);
  const charts = CHARTS.map(([kind, name, format]) => ({ kind, name, chart: new LineChart({ label: name, format, height: 120, zero: true }) }));
  const figures = charts.map(({ name, chart }) => panel(name, { className: "half" }, chart.root));
  const asks = [stacks(() => label), watch(() => label), profile(() => label)];
  const log = logLines(100);
  const root = h("div", { class: "grid-2" }, head.root, h("div", { class: "full grid-auto" }, ...figures.map((figure) => figure.root)), ...asks.map((part) => part.root),
    panel("Log", { className: "full" }, log.root).root);

  function update() {
    const labels = store.tasks().map((task) => task.label);
    choice.update(labels);
    if (!label) choose(choice.value);
    else if (choice.value !== label) choice.value = label;
    const task = store.task(label);
    setText(head.heading, label || "Task");
    state.root.hidden = !task;
    if (!task) {
      setText(words, labels.length ? `This run has no task ${label}. Choose another.` : "No tasks yet.");
      return;
    }
    state.update(task.state);
    drawFacts(facts, task);
    const hasParts = Object.keys(task.parts ?? {}).length > 0;
    step.root.hidden = legend.hidden = !hasParts;
    step.update(hasParts ? [stepRow(label, "step", stepShares(task), task.seconds_per_step)] : []);
    const isDead = ["dead", "failed"].includes(task.state);
    setText(words, isDead ? (task.last_words ?? ["It left no last words."]).join("\n") : errorText(task.last_error));
    setAttribute(words, "class", `words ${isDead ? "bad" : "warn"}`);
    words.hidden = !words.textContent;
    charts.forEach(({ kind, name, chart }, i) => {
      const values = store.values(`${kind}/${label}`);
      figures[i].root.hidden = !values.length;
      if (values.length) chart.update(store.shown(), [{ name, values, tone: i + 1 }]);
    });
  }

  function choose(next) {
    if (!next || next === label) return log.choose(label);
    label = next;
    choice.value = next;
    asks.forEach((part) => part.forget());
    log.choose(label);
  }

  return {
    root,
    show([path]) {
      choice.update(store.tasks().map((task) => task.label));
      const known = store.tasks().find((task) => inPath(task.label) === path);
      choose(known?.label ?? path?.replace(/-(\d+)$/, "/$1") ?? choice.value);
    },
    hide: () => log.stop(),
    update,
  };
}

function drawFacts(facts, task) {
  const rows = [
    ["Uptime", duration(task.uptime_seconds)], ["Rate", typeof task.steps_per_second === "number" ? si(task.steps_per_second, "steps/s") : "–"], ["Memory", bytes(task.memory_bytes)],
    ["CPU", typeof task.cpu_percent === "number" ? `${Math.round(task.cpu_percent)}\u00a0%` : "–"], ["Sends", byteRate(task.sent_bytes_per_second)], ["Receives", byteRate(task.received_bytes_per_second)],
    ["Requests", typeof task.requests_per_second === "number" ? si(task.requests_per_second, "/s") : "–"], ["Busy", percent(task.busy_fraction)],
    ["Updates", typeof task.updates_per_second === "number" ? si(task.updates_per_second, "/s") : "–"], ["Global step", whole(task.global_step)],
    ["Process", task.pid ? String(task.pid) : "–"], ["Host", task.host ?? "–"], ["Address", task.address ?? "–"],
  ].filter(([, value]) => value !== "–");
  if (facts.children.length !== rows.length) facts.replaceChildren(...rows.map(() => h("div", {}, h("dt"), h("dd"))));
  rows.forEach(([name, value], i) => {
    setText(facts.children[i].children[0], name);
    setText(facts.children[i].children[1], value);
  });
}

function stacks(label) {
  const result = h("div", { class: "answer" });
  const ask = asking("Show the stacks", () => post(`inspect/${inPath(label())}/stacks`), (answer) => {
    const threads = [...(answer.threads ?? [])].sort((a, b) => rank(a) - rank(b));
    result.replaceChildren(...(threads.length ? threads.map(thread) : [empty("The task told no threads.")]));
  });
  return question("Stacks", "What each thread is in, and what it waits for.", ask, [], result);
}

// Threads in a step or in the user's code come before those that serve, wait for connections and the like.
const rank = (one) => (one.step ? 0 : (one.frames ?? []).some((frame) => frame.is_users) ? 1 : 2);

function thread(one, i) {
  const wait = one.waits_for ? `waits for ${one.waits_for}${one.since_seconds ? ` for ${duration(one.since_seconds)}` : ""}` : "";
  const summary = h("summary", {}, h("span", { class: "branch-name", text: one.name ?? "thread" }), h("span", { class: "muted", text: one.step ?? "" }), wait ? h("span", { class: rank(one) < 2 ? "tag slow" : "muted", text: wait }) : null);
  // The innermost call first: it is what one looks for.
  const frames = [...(one.frames ?? [])].reverse().map((frame) => h("li", { class: frame.is_users ? "own" : null },
    h("span", { class: "mono function", text: frame.function ?? "?" }), h("span", { class: "muted", text: `${frame.file}:${frame.line}` }), frame.code ? h("code", { text: frame.code }) : null));
  return h("details", { class: "thread", open: i === 0 || rank(one) < 2 }, summary, h("ol", { class: "frames" }, ...frames));
}

function profile(label) {
  const result = h("div", { class: "answer" });
  const seconds = h("input", { type: "number", class: "field short", min: 1, max: 120, value: 5, "aria-label": "Seconds of the profile" });
  const native = h("input", { type: "checkbox" });
  const ask = asking("Sample", () => post(`inspect/${inPath(label())}/profile`, { seconds: Number(seconds.value) || 5, native: native.checked }, Number(seconds.value) + 45), (answer) => {
    const tree = mergedCalls(answer.collapsed ?? "");
    const save = (name, text, type) => h("button", { type: "button", class: "button", text: `Download ${name}`, onclick: () => download(name, text, type) });
    result.replaceChildren(
      tree.weight ? flameGraph(tree, result.clientWidth || 600) : empty("No sample: the task did nothing in that time."),
      h("p", { class: "muted", text: [answer.note, answer.tool ? `Sampled by ${answer.tool}.` : ""].filter(Boolean).join(" ") }),
      h("div", { class: "tools" }, save("profile.collapsed.txt", answer.collapsed ?? "", "text/plain"),
        // A picture that a task made is a file to keep, not to show: it may hold anything.
        answer.flamegraph_svg ? save("profile.svg", answer.flamegraph_svg, "image/svg+xml") : null));
  });
  return question("Profile", "A flame graph of where its time goes.", ask,
    [h("label", { class: "check" }, seconds, "seconds"), h("label", { class: "check" }, native, "native code too")], result);
}

const WATCHED_STEPS = 5;
const WATCH_POLLS = 8; // of two seconds each

function watch(label) {
  const result = h("div", { class: "answer" });
  const name = h("input", { type: "text", class: "field grow mono", placeholder: "dense/Relu:0", "aria-label": "Name of a tensor", spellcheck: "false", autocapitalize: "off" });
  const ask = asking("Watch", () => watched(label(), name.value.trim()), ({ seen, others, reasons }) => {
    if (!seen.length) {
      const instead = Object.entries(others).map(([fetches, count]) => `${fetches} (${whole(count)} steps)`);
      const why = [...Object.values(reasons), instead.length ? `Steps computed instead: ${instead.join(", ")}.` : "This task has taken no step."].map(String);
      return result.replaceChildren(empty("No step has computed this tensor.", why.join(" ")));
    }
    const names = ["min", "max", "mean", "std", "nans", "infinities"];
    const rows = seen.map(({ step, stats }) => h("tr", {}, h("td", { class: "number", text: whole(step) }), ...names.map((key) => h("td", { class: "number", text: plain(stats?.[key]) }))));
    const { dtype = "", shape = [] } = seen.at(-1).stats ?? {};
    result.replaceChildren(h("p", { class: "muted", text: `${seen[0].name}  ${dtype} [${shape.join(", ")}]` }),
      h("table", { class: "table" }, h("thead", {}, h("tr", {}, ...["step", ...names].map((text) => h("th", { scope: "col", class: "number", text })))), h("tbody", {}, ...rows)));
  });
  name.addEventListener("keydown", (event) => event.key === "Enter" && ask.run());
  return question("Watch a tensor", `statistics of its values in the next ${WATCHED_STEPS} steps`, ask, [name], result);
}

// Begins a watch where the tensor is computed, and asks until all its steps have been seen.
async function watched(label, name) {
  let task = label;
  const begin = (where) => post(`inspect/${inPath(where)}/watch`, { tensors: [name], steps: WATCHED_STEPS });
  let begun = await begin(task);
  const place = begun.tensors?.[0]?.task;
  if (place && place !== task) {
    task = place;
    begun = await begin(task);
  }
  const seen = [];
  let answer = {};
  for (let i = 0; i < WATCH_POLLS; i++) {
    answer = await post(`inspect/${inPath(task)}/watch_take`, { id: begun.id, seconds: 2, stats: true });
    seen.push(...(answer.seen ?? []));
    if (answer.done) break;
  }
  return { seen, others: answer.others ?? {}, reasons: answer.reasons ?? {} };
}

function question(title, about, ask, fields, result) {
  const box = panel(title, { className: title === "Profile" ? "full" : "half", note: about }, h("div", { class: "tools" }, ...fields, ask.button, ask.status), result);
  return {
    root: box.root,
    forget() {
      ask.forget();
      result.replaceChildren();
    },
  };
}
