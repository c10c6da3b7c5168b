// The page: its header, which view is open, and drawing once for each answer.

import { h, setAttribute, setText } from "./dom.js";
import { age, dateTime, duration, si, whole } from "./format.js";
import { axis } from "./charts/lines.js";
import { Store } from "./store.js";
import { stateDot } from "./views/tasks_table.js";
import { overview } from "./views/overview.js";
import { placement } from "./views/placement.js";
import { variables } from "./views/variables.js";
import { timeline } from "./views/timeline.js";
import { logs } from "./views/logs.js";
import { taskPage } from "./views/task.js";
import { settings } from "./views/settings.js";

const VIEWS = {
  overview: { name: "Overview", make: overview },
  placement: { name: "Placement", make: placement },
  variables: { name: "Variables", make: variables },
  timeline: { name: "Timeline", make: timeline },
  logs: { name: "Logs", make: logs },
  task: { name: "Task", make: taskPage },
  settings: { name: "Settings", make: settings },
};
const WINDOWS = [[60, "1 min"], [300, "5 min"], [600, "10 min"], [86_400, "all"]];
const THEMES = [["auto", "Theme: as the system"], ["light", "Theme: light"], ["dark", "Theme: dark"]];
const STALE_SECONDS = 3;

const store = new Store();
const opened = new Map();
let current = null;
let drawn = 0;

function header() {
  const name = h("h1", { class: "run-name", text: "TensorFleet" });
  const state = stateDot();
  const facts = new Map(["Uptime", "Global step", "Steps/s", "Tasks"].map((label) => [label, h("dd", { text: "–" })]));
  const live = h("span", { class: "live", role: "status" });
  const theme = h("button", { type: "button", class: "icon-button theme", onclick: changeTheme });
  const windows = h("div", { class: "segmented", role: "group", "aria-label": "Time shown in charts" },
    ...WINDOWS.map(([seconds, text]) => h("button", { type: "button", text, "data-seconds": seconds, "aria-pressed": String(seconds === store.window), onclick: () => chooseWindow(seconds) })));
  const links = new Map(Object.entries(VIEWS).map(([key, view]) => [key, h("a", { href: `#/${key}`, text: view.name })]));
  document.getElementById("head").append(
    h("div", { class: "head-row" },
      h("span", { class: "logo", "aria-hidden": "true" }), h("div", { class: "title" }, name, state.root),
      h("dl", { class: "facts" }, ...[...facts].map(([label, value]) => h("div", {}, h("dt", { text: label }), value))),
      h("div", { class: "head-end" }, live, theme)),
    h("div", { class: "nav-row" }, h("nav", { "aria-label": "Views" }, ...links.values()), windows));
  return { name, state, facts, live, theme, windows, links };
}

const head = header();

function changeTheme() {
  const before = document.documentElement.dataset.theme ?? "auto";
  const next = THEMES[(THEMES.findIndex(([name]) => name === before) + 1) % THEMES.length][0];
  if (next === "auto") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = next;
  try {
    localStorage.setItem("tensorfleet-theme", next);
  } catch {
    // It holds until the page is closed.
  }
  showTheme();
  dispatchEvent(new Event("themechange"));
}

function showTheme() {
  const name = document.documentElement.dataset.theme ?? "auto";
  const [, words] = THEMES.find(([theme]) => theme === name);
  setAttribute(head.theme, "aria-label", words);
  setAttribute(head.theme, "title", words);
  setText(head.theme, { auto: "◐", light: "☀", dark: "☾" }[name]);
}

function chooseWindow(seconds) {
  for (const button of head.windows.children) setAttribute(button, "aria-pressed", String(Number(button.dataset.seconds) === seconds));
  store.choose(seconds);
}

function runState() {
  const { run, now } = store;
  if (!run) return "starting";
  if (run.ended) return run.exit_code ? "failed" : "ended";
  const states = Object.values(now?.tasks ?? {}).map((task) => task.state);
  if (states.some((state) => state === "dead" || state === "failed")) return "degraded";
  return states.includes("running") ? "running" : "starting";
}

function drawHeader() {
  const { run, now } = store;
  const tasks = store.tasks();
  if (run) {
    setText(head.name, run.name ?? "run");
    setAttribute(head.name, "title", run.script ?? null);
    document.title = `${run.name} · TensorFleet`;
  }
  const lost = tasks.filter((task) => ["dead", "failed"].includes(task.state)).length;
  head.state.update(runState(), lost && !run?.ended ? `${lost} dead` : undefined);
  const began = run?.started;
  const end = run?.ended ?? now?.time;
  setText(head.facts.get("Uptime"), began && end ? duration(Math.max(0, end - began)) : "–");
  const steps = tasks.map((task) => task.global_step).filter((step) => typeof step === "number");
  setText(head.facts.get("Global step"), steps.length ? whole(Math.max(...steps)) : "–");
  const rates = tasks.map((task) => task.steps_per_second).filter((rate) => typeof rate === "number");
  setText(head.facts.get("Steps/s"), rates.length ? si(rates.reduce((a, b) => a + b, 0)) : "–");
  const running = tasks.filter((task) => task.state === "running").length;
  setText(head.facts.get("Tasks"), tasks.length ? (running === tasks.length ? `${running}` : `${running} of ${tasks.length}`) : "–");
}

/** What the page cannot do now, in a strip below the header; the last state stays. */
function drawBanner() {
  const banner = document.getElementById("banner");
  const seconds = (Date.now() - store.answeredAt) / 1000;
  const old = store.answeredAt ? ` Shown is the state of ${age(seconds)} ago.` : "";
  let text = "";
  let kind = "info";
  if (store.connection === "denied") {
    text = `The key is missing or wrong. Open the address that tensorfleet run printed, or run tensorfleet dashboard.${old}`;
    kind = "bad";
  } else if (store.connection === "away" && store.run?.ended) {
    text = `The run has ended, and its page with it. Run tensorfleet dashboard ${store.run.name} to look at it again.`;
  } else if (store.connection === "away") {
    text = `Reconnecting: the server of the page does not answer.${old} Training does not depend on it.`;
    kind = "warn";
  } else if (store.problem) {
    text = store.problem;
    kind = "warn";
  } else if (store.run?.ended) {
    const code = store.run.exit_code;
    const how = code === null || code === undefined ? "" : code ? ` with exit code ${code}` : " successfully";
    text = `The run ended${how} at ${dateTime(store.run.ended)}. Shown is its last state.`;
    kind = code ? "bad" : "info";
  } else if (store.connection === "live" && !store.times.length) {
    text = "No data yet: the first numbers come some seconds after the tasks have started.";
  }
  setAttribute(banner, "class", `banner ${kind}`);
  setText(banner, text);
  banner.hidden = !text;
  const isLive = store.connection === "live" && !store.run?.ended;
  setText(head.live, isLive ? "live" : store.run?.ended ? "ended" : store.connection === "loading" ? "loading" : `${age(seconds)} old`);
  setAttribute(head.live, "class", `live ${isLive ? "on" : ""}`);
  document.body.classList.toggle("stale", store.connection !== "live" && seconds > STALE_SECONDS && store.answeredAt > 0);
}

function draw() {
  drawHeader();
  drawBanner();
  axis.last = store.run?.ended ? "end" : "now";
  if (document.hidden && drawn) return;
  current?.update(store);
  if (drawn++ === 0) {
    // Two frames later the first state is on the screen.
    requestAnimationFrame(() => requestAnimationFrame(() => performance.measure("first-state-drawn", { start: 0 })));
  }
}

function timed() {
  performance.mark("draw-begins");
  draw();
  document.body.getBoundingClientRect(); // with the layout
  const isFirst = drawn === 1;
  performance.clearMeasures("draw");
  performance.measure("draw", "draw-begins");
  if (isFirst && store.now) performance.measure("first-draw", "draw-begins");
}

function route() {
  const [key, ...rest] = location.hash.replace(/^#\/?/, "").split("/");
  const name = VIEWS[key] ? key : "overview";
  const main = document.getElementById("main");
  const isNew = !opened.has(name);
  if (isNew) opened.set(name, VIEWS[name].make(store));
  const view = opened.get(name);
  if (current !== view) {
    current?.hide?.();
    main.replaceChildren(view.root);
    scrollTo(0, 0);
  }
  current = view;
  for (const [other, link] of head.links) setAttribute(link, "aria-current", other === name ? "page" : null);
  setAttribute(main, "aria-label", VIEWS[name].name);
  view.show?.(rest.map(decoded));
  view.update(store);
}

function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text; // typed by hand
  }
}

document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault(); // the address stays that of the view
  document.getElementById("main").focus();
});
showTheme();
addEventListener("hashchange", route);
document.addEventListener("visibilitychange", () => document.hidden || draw());
store.listeners.add(timed);
route();
setInterval(drawBanner, 1000); // the age of what is shown grows without answers, too
store.poll();
