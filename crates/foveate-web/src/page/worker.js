// The worker of the page in one file: it lets the session run, and posts what it says.

import { Engine } from "/engine.js";

/** Time between frames, as screens have it. */
const TICK_MS = 16;
/** Share of a tick for steps at maximum speed. */
const BUSY_MS = 11;

let module = null;
let engine = null;
let scene = null;
let last = performance.now();
let most = 1;

const say = (word) => postMessage(JSON.stringify(word));

async function begin() {
  engine = new Engine((await WebAssembly.instantiate(module)).exports);
}

/** Runs `act`; a module that broke is replaced by a fresh one, in the same scene. */
async function guarded(act) {
  try {
    act();
  } catch (error) {
    if (!(error instanceof WebAssembly.RuntimeError) && !(error instanceof RangeError)) {
      say({ type: "message", error: error.message });
      return;
    }
    say({ type: "message", error: `The session stopped (${error.message}); it begins again. Weights of this file may need more memory than a page has.` });
    engine = null;
    await begin();
    if (scene) engine.handle(scene);
  }
}

function tick() {
  if (!engine) return;
  const now = performance.now();
  const drawn = engine.advance(now - last, most);
  const spent = performance.now() - now;
  last = now;
  most = Math.min(Math.max(Math.floor((most * BUSY_MS) / Math.max(spent, 0.1)), 1), 4 * most, 10_000);
  for (const message of engine.messages()) postMessage(message);
  if (drawn) {
    const { buffer } = engine.frame();
    postMessage(buffer, [buffer]);
  }
}

async function take(command) {
  if (command.type === "begin") {
    const unpacked = new Blob([command.module]).stream().pipeThrough(new DecompressionStream("gzip"));
    module = await WebAssembly.compile(await new Response(unpacked).arrayBuffer());
    await begin();
    const turn = async () => {
      const started = performance.now();
      await guarded(tick);
      setTimeout(turn, Math.max(TICK_MS - (performance.now() - started), 0));
    };
    turn();
    return;
  }
  await guarded(() => {
    if (command.type === "weights") engine.weights(command.name, command.bytes);
    else engine.handle(command);
    if (command.type === "open") scene = command;
    for (const message of engine.messages()) postMessage(message);
    if (command.type !== "film") return;
    const { buffer } = engine.film();
    if (buffer.byteLength) postMessage(buffer, [buffer]);
    for (const message of engine.messages()) postMessage(message);
    // Time that a film took is not made up for.
    last = performance.now();
  });
}

// One after the other: a command may wait for a module.
let queue = Promise.resolve();
onmessage = ({ data }) => { queue = queue.then(() => take(data)).catch((error) => setTimeout(() => { throw error; })); };
