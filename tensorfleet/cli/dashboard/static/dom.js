// Elements are made here and nowhere else, from text: what comes from a run is never parsed as HTML.

const SVG = "http://www.w3.org/2000/svg";

function fill(node, properties, children) {
  for (const [name, value] of Object.entries(properties)) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "text") node.textContent = value;
    else if (name === "class") node.setAttribute("class", value);
    else if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value === true ? "" : String(value));
  }
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
}

/** An HTML element; `text` is its text, `onclick` and the like are listeners, all else attributes. */
export function h(tag, properties = {}, ...children) {
  return fill(document.createElement(tag), properties, children);
}

/** An SVG element. */
export function s(tag, properties = {}, ...children) {
  return fill(document.createElementNS(SVG, tag), properties, children);
}

/** Sets a text only if it is another: nothing is laid out again for an equal one. */
export function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

/** Sets or removes an attribute, if that changes something. */
export function setAttribute(node, name, value) {
  if (value === null || value === false) {
    if (node.hasAttribute(name)) node.removeAttribute(name);
  } else if (node.getAttribute(name) !== String(value)) node.setAttribute(name, value);
}

/** Text in which `this` is shown as code. */
export function withCode(text) {
  return String(text).split("`").map((part, i) => (i % 2 ? h("code", { text: part }) : document.createTextNode(part)));
}

/** One node for each item, kept by key: nodes stay where they are while the order is the same. */
export class Keyed {
  constructor(parent, make, offset = 0) {
    this.parent = parent;
    this.offset = offset; // children of the parent that stand before
    this.make = make;
    this.nodes = new Map();
  }

  update(items, keyOf, change) {
    const before = this.nodes;
    this.nodes = new Map();
    const ordered = items.map((item) => {
      const key = keyOf(item);
      const entry = before.get(key) ?? this.make(item);
      before.delete(key);
      this.nodes.set(key, entry);
      change?.(entry, item);
      return entry.root ?? entry;
    });
    for (const entry of before.values()) (entry.root ?? entry).remove();
    // A cursor and not an index: `children[i]` takes time that grows with i.
    let next = this.parent.children[this.offset] ?? null;
    for (const node of ordered) {
      if (node === next) next = next.nextElementSibling;
      else this.parent.insertBefore(node, next);
    }
  }
}

let panels = 0;

/** A titled box of the page. */
export function panel(title, { note = "", actions = [], className = "" } = {}, ...children) {
  const id = `panel-${++panels}`;
  const noteNode = h("span", { class: "note", text: note });
  const heading = h("h2", { id, text: title });
  const body = h("div", { class: "panel-body" }, ...children);
  const root = h("section", { class: `panel ${className}`, "aria-labelledby": id },
    h("div", { class: "panel-head" }, heading, noteNode, ...actions), body);
  return { root, body, heading, note: (text) => setText(noteNode, text) };
}

/** What stands where there is nothing to show, in words. */
export function empty(text, detail = "") {
  return h("div", { class: "empty" }, h("p", { text }), detail ? h("p", { class: "muted", text: detail }) : null);
}

/** A colour of the theme, as the canvas needs it. */
export function colour(name) {
  if (!colour.probe?.isConnected) {
    colour.probe = h("span", { hidden: true });
    document.body.append(colour.probe);
  }
  colour.probe.style.color = `var(${name})`;
  return getComputedStyle(colour.probe).color;
}

/** The box that follows the pointer. */
export const tip = {
  show(x, y, lines) {
    const node = document.getElementById("tip");
    node.replaceChildren(...lines.map((line) => (typeof line === "string" ? h("div", { text: line }) : line)));
    node.hidden = false;
    const box = node.getBoundingClientRect();
    const left = x + 14 + box.width > innerWidth ? x - 14 - box.width : x + 14;
    node.style.left = `${Math.max(4, left)}px`;
    node.style.top = `${Math.max(4, Math.min(y + 14, innerHeight - box.height - 4))}px`;
  },
  hide() {
    document.getElementById("tip").hidden = true;
  },
};
