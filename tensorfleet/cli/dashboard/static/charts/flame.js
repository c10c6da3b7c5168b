// A flame graph of collapsed stacks: lines of "outermost;...;innermost count".

import { h, s, tip } from "../dom.js";
import { percent, whole } from "../format.js";

const ROW = 19;
const MIN_FRACTION = 0.0008; // of the width; narrower calls are left out
const LETTER = 6.6; // pixels

/** Calls merged into a tree: {name, weight, children}. */
export function mergedCalls(collapsed) {
  const root = { name: "all", weight: 0, children: new Map() };
  for (const line of collapsed.split("\n")) {
    const [, stack, count] = /^(.+) (\d+)$/.exec(line) ?? [];
    if (!stack) continue;
    let node = root;
    node.weight += Number(count);
    for (const name of stack.split(";")) {
      if (!node.children.has(name)) node.children.set(name, { name, weight: 0, children: new Map() });
      node = node.children.get(name);
      node.weight += Number(count);
    }
  }
  return root;
}

const depthOf = (node) => 1 + Math.max(0, ...[...node.children.values()].map(depthOf));

export function flameGraph(tree, width) {
  const share = (node) => `${whole(node.weight)} samples, ${percent(node.weight / (tree.weight || 1))}`;
  const svg = s("svg", { class: "flame", role: "tree", "aria-label": `Flame graph of ${tree.name}` });
  const crumbs = h("p", { class: "muted" });

  function zoom(node) {
    const height = depthOf(node) * ROW;
    svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    svg.setAttribute("height", height);
    const nodes = [];
    draw(node, 0, width, 0, nodes, node.weight || 1);
    svg.replaceChildren(...nodes);
    crumbs.textContent = node === tree ? "Press a call to look closer." : `Below ${node.name}. Press its bar again for everything.`;
    crumbs.dataset.of = node.name;
  }

  function draw(node, x, w, depth, nodes, whole) {
    const isTop = depth === 0;
    const letters = Math.floor((w - 8) / LETTER);
    const name = node.name.length > letters ? `${node.name.slice(0, Math.max(0, letters - 1))}…` : node.name;
    const box = s("g", { class: `call tone-${(hash(node.name) % 6) + 1}`, tabindex: 0, role: "treeitem", "aria-label": `${node.name}, ${share(node)}` },
      s("rect", { x: x.toFixed(1), y: depth * ROW, width: Math.max(0.5, w - 0.8).toFixed(1), height: ROW - 1.5, rx: 2 }),
      letters > 3 ? s("text", { x: (x + 4).toFixed(1), y: depth * ROW + 13, text: name }) : null);
    const choose = () => zoom(isTop ? tree : node);
    box.addEventListener("click", choose);
    box.addEventListener("keydown", (event) => {
      if (event.key === "Enter" || event.key === " ") {
        event.preventDefault();
        choose();
        svg.querySelector(".call")?.focus();
      }
    });
    box.addEventListener("pointermove", (event) => tip.show(event.clientX, event.clientY, [h("b", { text: node.name }), share(node)]));
    box.addEventListener("pointerleave", () => tip.hide());
    nodes.push(box);
    let left = x;
    for (const child of [...node.children.values()].sort((a, b) => b.weight - a.weight)) {
      const size = (w * child.weight) / (node.weight || 1);
      if (child.weight / whole > MIN_FRACTION) draw(child, left, size, depth + 1, nodes, whole);
      left += size;
    }
  }

  zoom(tree);
  return h("div", {}, crumbs, svg);
}

function hash(text) {
  let result = 7;
  for (let i = 0; i < text.length; i++) result = (result * 31 + text.charCodeAt(i)) >>> 0;
  return result;
}
