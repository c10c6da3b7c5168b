// Every setting as a task uses it, and which of them are not what they are by default.

import { post } from "../api.js";
import { Keyed, h, panel, setAttribute, setText, withCode } from "../dom.js";
import { clock, inPath } from "../format.js";
import { asking, taskChoice } from "./asking.js";

const PAGE = "this page"; // the process that serves it
const SOURCES = { program: "by the program, " };

export function settings() {
  let rows = [];
  let own = []; // of the page's process
  let keptAt = null;
  let asked = ""; // the task whose settings are shown, or asked for
  const choice = taskChoice("Whose settings", () => askChosen());
  const ask = asking("Ask again", () => post(`inspect/${inPath(choice.value)}/settings`), (answer) => {
    rows = answer.settings ?? [];
    keptAt = answer.kept_at ?? null;
    draw();
  });
  const search = h("input", { type: "search", class: "field grow", placeholder: "Filter settings", "aria-label": "Filter settings", oninput: () => draw() });
  const body = h("tbody");
  const none = h("p", { class: "empty-line" });
  const box = panel("Settings", { className: "full" }, h("div", { class: "tools" }, choice.root, search, ask.button, ask.status),
    h("table", { class: "table settings-table" }, h("thead", {}, h("tr", {}, ...["Setting", "Value", "Purpose"].map((text) => h("th", { scope: "col", text })))), body), none);
  const keyed = new Keyed(body, () => {
    const [name, value, purpose] = [h("td", { class: "mono name" }), h("td", { class: "mono value" }), h("td", { class: "muted" })];
    return { root: h("tr", {}, name, value, purpose), name, value, purpose };
  });
  const isSet = (row) => row.source !== "default";

  function askChosen() {
    asked = choice.value;
    ask.forget();
    [rows, keptAt] = [asked === PAGE ? own : [], null];
    ask.button.hidden = asked === PAGE;
    if (asked !== PAGE) ask.run();
    draw();
  }

  function draw() {
    const wanted = search.value.trim().toLowerCase();
    const shown = rows.filter((row) => `${row.name} ${row.value} ${row.purpose}`.toLowerCase().includes(wanted));
    shown.sort((a, b) => Number(isSet(b)) - Number(isSet(a)));
    none.hidden = shown.length > 0;
    setText(none, rows.length ? `No setting matches ${search.value.trim()}.` : "No settings have been told.");
    box.note(rows.length ? `${rows.filter(isSet).length} of ${rows.length} set${keptAt ? `, as of ${clock(keptAt)}` : ""}` : "");
    keyed.update(shown, (row) => row.name, (entry, row) => {
      const fallback = row.default || "none";
      setText(entry.name, row.name);
      setText(entry.value, isSet(row) ? `${row.value || "nothing"}  (${SOURCES[row.source] ?? ""}default ${fallback})` : fallback);
      const text = [row.problem, row.purpose].filter(Boolean).join(" ");
      if (entry.text !== text) entry.purpose.replaceChildren(...withCode((entry.text = text)));
      setAttribute(entry.root, "class", isSet(row) ? "set" : null);
    });
  }

  return {
    root: box.root,
    update(store) {
      own = [...(store.run?.settings ?? [])];
      if (!store.run) return;
      choice.update([...store.tasks().map((task) => task.label), PAGE]);
      if (asked !== choice.value) askChosen();
      else if (asked === PAGE) {
        rows = own;
        draw();
      }
    },
  };
}
