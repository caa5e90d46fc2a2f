// Drives the WebAssembly module by the commands in a JSON list, each list of them followed by as many single steps as it says, and
// prints the SHA-256 of every frame: node episode.mjs MODULE ENGINE PLAN

import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";
import { gunzipSync } from "node:zlib";

const [, , module, script, plan] = process.argv;
const { Engine } = await import(pathToFileURL(script));
const engine = new Engine((await WebAssembly.instantiate(gunzipSync(readFileSync(module)))).instance.exports);

const lines = [];
for (const { commands, steps } of JSON.parse(plan)) {
  commands.forEach((command) => engine.handle(command));
  for (let step = 0; step < steps; step++) {
    engine.handle({ type: "step" });
    lines.push(createHash("sha256").update(engine.frame()).digest("hex"));
  }
  for (const message of engine.messages().map((text) => JSON.parse(text))) {
    if (message.error) throw new Error(message.error);
    if (message.type === "end") lines.push(`${message.runners[0].score} ${message.runners[0].steps}`);
  }
}
process.stdout.write(lines.join("\n"));
