// Which operation is on which task and device: a tree, and a search.

import { post } from "../api.js";
import { empty, h, panel, setText } from "../dom.js";
import { clock, inPath, whole } from "../format.js";
import { asking, taskChoice } from "./asking.js";
import { nearest } from "./nearest.js";

const MAX_MATCHES = 200;
const MAX_CHILDREN = 300;

export function placement() {
  const choice = taskChoice("Task that is asked for its graphs", () => ask.forget());
  const search = h("input", { type: "search", class: "field grow", placeholder: "Search operations: name, type or device", "aria-label": "Search operations", oninput: () => show() });
  const ask = asking("Ask again", () => post(`inspect/${inPath(choice.value)}/graph`), (answer) => {
    leftOut = answer.left_out ?? 0;
    keptAt = answer.kept_at ?? null;
    nodes = (answer.sessions ?? []).flatMap((session) => (session.graph ?? []).map((node) => ({ ...node, session: session.session })));
    show();
  });
  const box = panel("Placement", { className: "full" }, h("div", { class: "tools" }, choice.root, ask.button, search, ask.status));
  const result = h("div", { class: "placement" });
  box.body.append(result);
  let nodes = null;
  let leftOut = 0; // operations that the task did not tell
  let keptAt = null;

  function show() {
    const wanted = search.value.trim().toLowerCase();
    if (!nodes) return;
    if (!nodes.length) {
      box.note("");
      return result.replaceChildren(empty("No session of this task has a graph.", "Graphs belong to the task whose script opened the session: choose a worker."));
    }
    const part = leftOut ? `${whole(nodes.length)} of ${whole(nodes.length + leftOut)}` : whole(nodes.length);
    box.note(`${part} operations${keptAt ? `, as of ${clock(keptAt)}` : ""}`);
    result.replaceChildren(wanted ? matches(wanted) : tree());
  }

  function matches(wanted) {
    const hits = nodes.filter((node) => `${node.name} ${node.op} ${node.device}`.toLowerCase().includes(wanted));
    if (!hits.length) return empty(`No operation matches ${search.value.trim()}.`, `Near: ${nearest(wanted, nodes.map((node) => node.name)).join(", ")}`);
    const more = hits.length > MAX_MATCHES ? h("p", { class: "muted", text: `${MAX_MATCHES} of ${whole(hits.length)} shown: type more of the name.` }) : null;
    return h("div", {}, h("ul", { class: "ops" }, ...hits.slice(0, MAX_MATCHES).map((node) => operation(node, node.name, true))), more);
  }

  function tree() {
    const devices = new Map();
    for (const node of nodes) {
      const device = deviceName(node.device || "no device"); // short and full names of a device are one
      if (!devices.has(device)) devices.set(device, []);
      devices.get(device).push(node);
    }
    const byName = [...devices].sort(([a], [b]) => a.localeCompare(b, undefined, { numeric: true }));
    return h("div", {}, ...byName.map(([device, own]) => branch(device, own[0].device ?? "", own, () => scopes(own, 0))));
  }

  let isAsked = false;
  return {
    root: box.root,
    show() {
      search.focus({ preventScroll: true });
    },
    update(store) {
      choice.update(store.tasks().map((task) => task.label), (label) => label.startsWith("worker") || label.startsWith("chief"));
      if (isAsked || !choice.value || !store.run) return;
      isAsked = true;
      setText(ask.button, "Ask this task");
      ask.run();
    },
  };
}

/** /job:ps/replica:0/task:1/device:CPU:0 as ps/1 CPU:0. */
export function deviceName(device) {
  const parts = /\/job:([^/]+)(?:\/replica:\d+)?\/task:(\d+)(?:\/device:(.+))?/.exec(device);
  return parts ? `${parts[1]}/${parts[2]} ${parts[3] ?? ""}`.trim() : device;
}

// A branch makes its children when it is opened: a graph may have 20,000 operations.
function branch(name, title, nodes, children) {
  const details = h("details", { class: "branch" }, h("summary", { title }, h("span", { class: "branch-name", text: name }), h("span", { class: "count", text: whole(nodes.length) })));
  details.addEventListener("toggle", () => {
    if (details.open && details.children.length === 1) details.append(h("div", { class: "children" }, ...children()));
  }, { once: true });
  return details;
}

function scopes(nodes, depth) {
  const groups = new Map();
  for (const node of nodes) {
    const first = node.name.split("/")[depth] ?? node.name;
    if (!groups.has(first)) groups.set(first, []);
    groups.get(first).push(node);
  }
  const result = [];
  for (const [name, own] of groups) {
    const leaves = own.filter((node) => node.name.split("/").length === depth + 1);
    const deeper = own.filter((node) => node.name.split("/").length > depth + 1);
    result.push(...leaves.map((node) => operation(node, name, false)));
    if (deeper.length === 1 && !leaves.length) result.push(operation(deeper[0], deeper[0].name.split("/").slice(depth).join("/"), false));
    else if (deeper.length) result.push(branch(`${name}/`, "", deeper, () => scopes(deeper, depth + 1)));
    if (result.length >= MAX_CHILDREN) {
      result.push(h("p", { class: "muted", text: "More are not shown: search for them." }));
      break;
    }
  }
  return result;
}

function operation(node, name, isWhole) {
  const where = isWhole ? h("span", { class: "op-device", text: deviceName(node.device || "no device") }) : null;
  const inputs = (node.inputs ?? []).slice(0, 6).join(", ");
  return h(isWhole ? "li" : "div", { class: "op" },
    h("span", { class: "op-name mono", text: name }), h("span", { class: "op-type", text: node.op }), where,
    h("span", { class: "op-more muted", text: [inputs ? `← ${inputs}` : "", node.line ?? ""].filter(Boolean).join("   ") }));
}
