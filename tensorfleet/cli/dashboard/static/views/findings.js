// What is wrong, in words, with what to do about it.

import { Keyed, h, panel, setAttribute, setText, withCode } from "../dom.js";
import { age, inPath } from "../format.js";

const WORDS = { serious: "serious", warning: "warning", info: "note" };
const ORDER = { serious: 0, warning: 1, info: 2 };

/** One row for each kind and task: its sentence may change each second, the row stays. */
function keyed(findings) {
  const seen = new Map();
  return findings.map((finding) => {
    const name = `${finding.kind ?? finding.severity} ${finding.task ?? ""}`;
    const count = seen.get(name) ?? 0;
    seen.set(name, count + 1);
    return { ...finding, key: `${name} ${count}` };
  });
}

function sentence(node, text) {
  if (node.dataset.text === text) return;
  node.dataset.text = text;
  node.replaceChildren(...withCode(text));
}

function findingRow(finding) {
  const badge = h("span", {});
  const text = h("p", { class: "finding-text" });
  const advice = h("p", { class: "advice" });
  const link = h("a", { class: "finding-task", hidden: !finding.task, href: finding.task ? `#/task/${inPath(finding.task)}` : null, text: finding.task });
  const since = h("span", { class: "since" });
  const root = h("li", { "data-task": finding.task }, badge, h("div", { class: "finding-words" }, text, advice), h("div", { class: "finding-end" }, link, since));
  return { root, badge, text, advice, since };
}

export function findingsPanel() {
  const box = panel("Findings", { className: "findings" });
  const list = h("ul", { class: "finding-list" });
  const none = h("p", { class: "all-well" });
  // Told to screen readers once, when it appears; not each time that its numbers change.
  const news = h("p", { class: "unseen", role: "status" });
  box.body.append(list, none, news);
  const rows = new Keyed(list, findingRow);
  let known = new Set();
  const update = (store) => {
    const findings = keyed([...(store.now?.findings ?? [])].sort((a, b) => (ORDER[a.severity] ?? 3) - (ORDER[b.severity] ?? 3)));
    box.note(findings.length > 3 ? `${findings.length}` : "");
    setText(none, store.now ? "Nothing stands out." : "Waiting for the first numbers.");
    none.hidden = findings.length > 0;
    const fresh = findings.filter((finding) => !known.has(finding.key));
    if (fresh.length) setText(news, fresh.map((finding) => finding.text).join(" "));
    known = new Set(findings.map((finding) => finding.key));
    rows.update(findings, (finding) => finding.key, (row, finding) => {
      setAttribute(row.root, "class", `finding ${finding.severity}`);
      setAttribute(row.badge, "class", `badge ${finding.severity}`);
      setText(row.badge, WORDS[finding.severity] ?? finding.severity);
      sentence(row.text, finding.text);
      sentence(row.advice, finding.advice ?? "");
      setText(row.since, finding.since ? `for ${age(Math.max(0, store.now.time - finding.since))}` : "");
    });
  };
  return { root: box.root, update };
}
