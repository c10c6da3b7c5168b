// Variables: where they are, how large, how often read and changed.

import { post } from "../api.js";
import { Keyed, h, panel, setAttribute, setText } from "../dom.js";
import { byteRate, bytes, clock, inPath, si, whole } from "../format.js";
import { asking, taskChoice } from "./asking.js";
import { nearest } from "./nearest.js";

const ALL = "all tasks";
const MOST = 50; // that the server tells of all tasks
const COLUMNS = [
  { key: "name", name: "Variable" },
  { key: "task", name: "Task" },
  { key: "shape", name: "Type and shape", className: "wide" },
  { key: "bytes", name: "Size", number: true },
  { key: "version", name: "Version", number: true, className: "wide" },
  { key: "bytes_per_second", name: "Traffic", number: true },
  { key: "reads_per_second", name: "Reads/s", number: true, className: "wide", about: "Reads of small variables from shared memory, on the same machine, are not counted here." },
  { key: "updates_per_second", name: "Updates/s", number: true, className: "wide" },
];

export function variables(store) {
  let sortKey = "bytes_per_second";
  let descending = true;
  let ofTask = null; // variables of one task, as it told them
  let keptAt = null; // when, of a run that has ended
  const choice = taskChoice("Whose variables", () => {
    ask.forget();
    ofTask = null;
    if (choice.value !== ALL) ask.run();
    draw();
  });
  const ask = asking("Ask again", () => post(`inspect/${inPath(choice.value)}/stats`), (answer) => {
    keptAt = answer.kept_at ?? null;
    ofTask = (answer.variables ?? []).map((variable) => ({ task: choice.value, ...variable }));
    draw();
  });
  const search = h("input", { type: "search", class: "field grow", placeholder: "Filter by name", "aria-label": "Filter variables", oninput: () => draw() });
  const heads = COLUMNS.map((column) => {
    const button = h("button", { type: "button", class: "sort", text: column.name, title: column.about, onclick: () => sortBy(column.key) });
    return h("th", { scope: "col", class: [column.number ? "number" : "", column.className ?? ""].join(" ").trim() }, button);
  });
  const rowsOf = h("tbody");
  const none = h("p", { class: "empty-line" });
  const box = panel("Variables", { className: "full" }, h("div", { class: "tools" }, choice.root, search, ask.button, ask.status),
    h("table", { class: "table" }, h("thead", {}, h("tr", {}, ...heads)), rowsOf), none);
  const rows = new Keyed(rowsOf, () => {
    const cells = COLUMNS.map((column) => h("td", { class: [column.number ? "number" : "", column.className ?? "", column.key === "name" ? "mono name" : ""].join(" ").trim() }));
    const meter = h("i", { class: "meter", "aria-hidden": "true" });
    const text = cells.map((cell) => cell.appendChild(h("span")));
    cells[5].append(meter);
    return { root: h("tr", {}, ...cells), text, meter };
  });

  function sortBy(key) {
    [sortKey, descending] = key === sortKey ? [key, !descending] : [key, !["name", "task", "shape"].includes(key)];
    draw();
  }

  function draw() {
    const all = ofTask ?? (choice.value === ALL || !choice.value ? store.now?.variables ?? [] : []);
    const wanted = search.value.trim().toLowerCase();
    const shown = all.filter((variable) => variable.name.toLowerCase().includes(wanted));
    const value = (variable) => (sortKey === "shape" ? String(variable.shape) : variable[sortKey] ?? "");
    const sign = descending ? -1 : 1;
    shown.sort((a, b) => (value(a) < value(b) ? -sign : value(a) > value(b) ? sign : a.name.localeCompare(b.name)));
    heads.forEach((head, i) => setAttribute(head, "aria-sort", COLUMNS[i].key === sortKey ? (descending ? "descending" : "ascending") : null));
    ask.button.hidden = choice.value === ALL || !choice.value;
    const count = choice.value === ALL && all.length >= MOST ? `the ${whole(all.length)} with the most traffic; choose a task for all of its own` : whole(all.length);
    box.note(ofTask && keptAt ? `${count}, as of ${clock(keptAt)}` : count);
    none.hidden = shown.length > 0;
    setText(none, !all.length ? "No variables have been told yet." : `No variable matches ${search.value.trim()}. Near: ${nearest(wanted, all.map((variable) => variable.name)).join(", ")}`);
    const most = Math.max(...all.map((variable) => variable.bytes_per_second ?? 0), 1e-9);
    rows.update(shown, (variable) => `${variable.task} ${variable.name}`, (row, variable) => {
      const texts = [variable.name, variable.task, `${variable.dtype ?? ""} [${(variable.shape ?? []).join(", ")}]`, bytes(variable.bytes), whole(variable.version),
        byteRate(variable.bytes_per_second), si(variable.reads_per_second), si(variable.updates_per_second)];
      texts.forEach((text, i) => setText(row.text[i], text));
      row.meter.style.width = `${(100 * (variable.bytes_per_second ?? 0)) / most}%`;
    });
  }

  return {
    root: box.root,
    update() {
      choice.update([ALL, ...store.tasks().map((task) => task.label)]);
      draw();
    },
  };
}
