// Runs Perfetto's trace processor (WebAssembly, as it is made for a browser's worker): bytes of its RPC from stdin to stdout.
const fs = require("fs"), path = require("path"), vm = require("vm");
const host = process, folder = host.argv[2];
const read = (name) => fs.readFileSync(path.join(folder, path.basename(String(name))));
const warn = (...words) => host.stderr.write(words.join(" ") + "\n");
Object.assign(globalThis, {
  self: globalThis,
  WorkerGlobalScope: class {},
  importScripts() {},
  location: { href: "file:///engine_bundle.js", protocol: "file:", host: "" },
  fetch: async (name) => new Response(read(name), { headers: { "Content-Type": "application/wasm" } }),
  XMLHttpRequest: class {
    open(_, name) { this.name = name; }
    send() { this.response = new Uint8Array(read(this.name)).buffer; }
  },
});
console.log = console.warn = console.error = warn;
globalThis.process = undefined; // or it takes this for a program of node, for which it was not made
const port = { onmessage: null, postMessage: (data) => host.stdout.write(Buffer.from(data)) };
vm.runInThisContext(read("engine_bundle.js").toString());
globalThis.onmessage({ data: port });
setTimeout(() => {
  host.stdin.on("data", (data) => port.onmessage({ data: new Uint8Array(data) }));
  host.stdin.on("end", () => host.exit(0));
}, Number(host.argv[3] || 1500));
