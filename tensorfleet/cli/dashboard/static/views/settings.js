// Every setting, and which of them are not what they are by default.

import { Keyed, h, panel, setAttribute, setText, withCode } from "../dom.js";

export function settings() {
  let rows = [];
  const search = h("input", { type: "search", class: "field grow", placeholder: "Filter settings", "aria-label": "Filter settings", oninput: () => draw() });
  const body = h("tbody");
  const none = h("p", { class: "empty-line" });
  const box = panel("Settings", { className: "full" }, h("div", { class: "tools" }, search),
    h("table", { class: "table settings-table" }, h("thead", {}, h("tr", {}, ...["Setting", "Value", "Purpose"].map((text) => h("th", { scope: "col", text })))), body), none);
  const keyed = new Keyed(body, () => {
    const [name, value, purpose] = [h("td", { class: "mono name" }), h("td", { class: "mono value" }), h("td", { class: "muted" })];
    return { root: h("tr", {}, name, value, purpose), name, value, purpose };
  });

  function draw() {
    const wanted = search.value.trim().toLowerCase();
    const shown = rows.filter((row) => `${row.name} ${row.value ?? ""} ${row.purpose}`.toLowerCase().includes(wanted));
    const isSet = (row) => row.value !== null && row.value !== undefined && String(row.value) !== String(row.default ?? "");
    shown.sort((a, b) => Number(isSet(b)) - Number(isSet(a)));
    none.hidden = shown.length > 0;
    setText(none, rows.length ? `No setting matches ${search.value.trim()}.` : "No settings have been told.");
    box.note(`${rows.filter(isSet).length} of ${rows.length} set`);
    keyed.update(shown, (row) => row.name, (entry, row) => {
      const fallback = row.default === null || row.default === undefined || row.default === "" ? "none" : String(row.default);
      setText(entry.name, row.name);
      setText(entry.value, isSet(row) ? `${row.value}  (default ${fallback})` : fallback);
      if (entry.text !== row.purpose) entry.purpose.replaceChildren(...withCode((entry.text = row.purpose) ?? ""));
      setAttribute(entry.root, "class", isSet(row) ? "set" : null);
    });
  }

  return {
    root: box.root,
    update(store) {
      rows = [...(store.run?.settings ?? [])];
      draw();
    },
  };
}
