// The next steps of all tasks on one axis of time, and the same as a file for Perfetto.

import { download, post } from "../api.js";
import { Lanes } from "../charts/lanes.js";
import { h, panel } from "../dom.js";
import { bytes, duration, whole } from "../format.js";
import { asking } from "./asking.js";

const MAX_STEPS = 1000;
const TRACE_SECONDS = 90;

export function timeline(store) {
  const count = h("input", { type: "number", class: "field short", min: 1, max: MAX_STEPS, value: 20, "aria-label": "Number of steps" });
  const lanes = new Lanes();
  const doing = "Tracing, until the slowest worker has done its steps …";
  const ask = asking("Trace the next steps", () => post(`trace?steps=${Number(count.value) || 20}`, {}, TRACE_SECONDS), (trace) => {
    const text = JSON.stringify(trace);
    save.hidden = false;
    save.onclick = () => download(`${store.run?.name ?? "run"}-trace.json`, text);
    save.textContent = `Download (${bytes(text.length)})`;
    none.hidden = true;
    lanes.root.hidden = zooms.hidden = false;
    lanes.show(trace);
    box.note(`${whole(lanes.count)} events in ${duration(lanes.length / 1e6)}`);
  }, doing);
  const save = h("button", { type: "button", class: "button", hidden: true });
  const zooms = h("div", { class: "segmented", role: "group", "aria-label": "Zoom", hidden: true },
    h("button", { type: "button", text: "−", "aria-label": "Zoom out", onclick: () => lanes.zoom(1.7) }),
    h("button", { type: "button", text: "+", "aria-label": "Zoom in", onclick: () => lanes.zoom(0.6) }),
    h("button", { type: "button", text: "fit", onclick: () => lanes.fit() }));
  const none = h("div", { class: "empty" }, h("p", { text: "Nothing has been traced yet." }),
    h("p", { class: "muted", text: "A trace shows what every task does in some steps: its segments, ops, waits and transfers. The file opens in ui.perfetto.dev, too." }));
  ask.button.classList.add("primary");
  const box = panel("Timeline", { className: "full" },
    h("div", { class: "tools" }, h("label", { class: "check" }, count, "steps"), ask.button, save, zooms, ask.status), none, lanes.root);
  lanes.root.hidden = true;
  return { root: box.root, update() {} };
}
