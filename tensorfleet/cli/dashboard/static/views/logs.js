// The end of a task's log.

import { get } from "../api.js";
import { h, panel, setText } from "../dom.js";
import { inPath } from "../format.js";
import { taskChoice } from "./asking.js";

const EVERY_MS = 2000;
const LENGTHS = [200, 1000, 5000];

function levelOf(line) {
  const first = /^(?:\S+\s)?\[?([IWEF])(?:\d{4})?\b/.exec(line);
  if (first) return { W: "warn", E: "bad", F: "bad" }[first[1]] ?? "";
  return /\b(?:error|traceback|exception)\b/i.test(line) ? "bad" : "";
}

/** The lines of one task, renewed while they are on the screen. */
export function logLines(tail = 200) {
  const lines = h("pre", { class: "log", tabindex: 0, role: "log", "aria-label": "Log lines", "aria-live": "off" });
  const status = h("p", { class: "empty-line", role: "status", text: "Asking …" });
  const root = h("div", { class: "log-box" }, status, lines);
  let label = null;
  let shown = [];
  let note = "";
  let filter = "";
  let timer = 0;
  let text = null;
  let asked = 0;
  const state = { tail, follow: true };

  function draw() {
    const matching = filter ? shown.filter((line) => line.toLowerCase().includes(filter)) : shown;
    const next = matching.join("\n");
    status.hidden = matching.length > 0;
    lines.hidden = !matching.length;
    if (!matching.length) setText(status, shown.length ? "No line matches." : note || "The log is empty.");
    if (next === text) return;
    text = next;
    lines.replaceChildren(...matching.map((line) => h("span", { class: `line ${levelOf(line)}`.trim(), text: `${line}\n` })));
    if (state.follow) lines.scrollTop = lines.scrollHeight;
  }

  async function ask() {
    clearTimeout(timer);
    const mine = ++asked;
    if (!root.isConnected || !label) return;
    try {
      const answer = await get(`logs/${inPath(label)}?tail=${state.tail}`);
      if (mine !== asked) return;
      shown = answer.lines ?? [];
      note = answer.note ?? "";
      draw();
    } catch (error) {
      if (mine !== asked) return;
      status.hidden = false;
      setText(status, error.message);
    }
    timer = setTimeout(ask, EVERY_MS);
  }

  return Object.assign(state, {
    root,
    choose(next) {
      if (next !== label) {
        label = next;
        shown = [];
        text = null;
        lines.replaceChildren();
        status.hidden = false;
        setText(status, "Asking …");
      }
      ask();
    },
    search(words) {
      filter = words.trim().toLowerCase();
      draw();
    },
    stop: () => clearTimeout(timer),
  });
}

export function logs(store) {
  const log = logLines();
  const choice = taskChoice("Task whose log is shown", () => log.choose(choice.value));
  const search = h("input", { type: "search", class: "field grow", placeholder: "Filter lines", "aria-label": "Filter lines", oninput: () => log.search(search.value) });
  const length = h("select", { class: "field", "aria-label": "Number of lines", onchange: () => {
    log.tail = Number(length.value);
    log.choose(choice.value);
  } }, ...LENGTHS.map((count) => h("option", { value: count, text: `last ${count} lines` })));
  const follow = h("input", { type: "checkbox", checked: true, onchange: () => (log.follow = follow.checked) });
  const box = panel("Logs", { className: "full" }, h("div", { class: "tools" }, choice.root, length, search, h("label", { class: "check" }, follow, "follow")), log.root);
  return {
    root: box.root,
    show([path]) {
      choice.update(store.tasks().map((task) => task.label));
      const wanted = store.tasks().find((task) => inPath(task.label) === path);
      if (wanted) choice.value = wanted.label;
      if (choice.value) log.choose(choice.value);
    },
    hide: () => log.stop(),
    update() {
      const before = choice.value;
      choice.update(store.tasks().map((task) => task.label));
      if (!before && choice.value) log.choose(choice.value);
      setText(box.heading, choice.value ? `Log of ${choice.value}` : "Logs");
    },
  };
}
