// Asking a task something: a button, what it is doing, and the sentence if it fails.

import { h, setText } from "../dom.js";

/** A button that runs `ask()` and hands its answer to `show`; errors stand beside it, in words. */
export function asking(text, ask, show, doing = "Asking …") {
  const button = h("button", { type: "button", class: "button", text });
  const status = h("span", { class: "ask-status", role: "status" });
  let number = 0;
  const run = async () => {
    const mine = ++number;
    button.disabled = true;
    status.className = "ask-status";
    setText(status, doing);
    try {
      const answer = await ask();
      if (mine !== number) return;
      setText(status, "");
      show(answer);
    } catch (error) {
      if (mine !== number) return;
      status.className = "ask-status bad";
      setText(status, error.message);
      if (!error.kind) console.error(error);
    } finally {
      if (mine === number) button.disabled = false;
    }
  };
  button.addEventListener("click", run);
  /** Forgets a question that is under way, as when another task is chosen. */
  const forget = () => {
    number++;
    button.disabled = false;
    setText(status, "");
  };
  return { button, status, run, forget };
}

/** A choice of tasks that keeps what was chosen. */
export function taskChoice(label, onchange) {
  const root = h("select", { class: "field", "aria-label": label, onchange });
  let known = "";
  return {
    root,
    get value() {
      return root.value;
    },
    set value(label) {
      root.value = label;
    },
    /** `first` chooses a task if none was. */
    update(labels, first = () => true) {
      const text = labels.join("\n");
      if (text === known) return;
      known = text;
      const before = root.value;
      root.replaceChildren(...labels.map((name) => h("option", { value: name, text: name })));
      root.value = labels.includes(before) ? before : labels.find(first) ?? labels[0] ?? "";
    },
  };
}
