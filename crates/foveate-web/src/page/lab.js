// The page: what the lab says becomes pictures and controls, what its user does becomes commands.

import { Covers, Wheel, driving, isCover, readShift, writeShift } from "/input.js";
import { Panel } from "/panel.js";
import { Display } from "/display.js";
import { connect } from "/connection.js";

const $ = (id) => document.getElementById(id);
let settings = null;
let hello = null;
let send = () => {};
let scores = new Map();
let latest = null;

const request = (change) => send({ type: "set", ...change });
const panel = new Panel(request, (command) => send(command));
const display = new Display($("display"), { onView: (width, height) => send({ type: "view", width, height }), onSize: () => again() });
const tool = () => document.querySelector("input[name=tool]:checked")?.value ?? "";

// ── words from the lab ──

function onMessage(message) {
  if (message.type === "hello") {
    hello = message;
    panel.build(hello);
    showScenes();
    document.body.dataset.sees = hello.sees;
    settings = hello.settings;
    wheel.give();
    wheel.action = hello.choices ? null : driving(hello.actions);
    $("wheel").hidden = !wheel.action;
    build();
    show(settings);
    follow();
  } else if (message.type === "state") {
    const before = JSON.stringify(settings.runners.map((runner) => runner.agent));
    const { paused } = settings;
    settings = message.settings;
    // Another world or another agent has a wheel of its own, which nobody holds.
    if (message.rebuilt) wheel.give();
    if (JSON.stringify(settings.runners.map((runner) => runner.agent)) !== before) build();
    show(settings);
    // No frame may follow that would say so.
    if (!message.rebuilt && settings.paused !== paused) again();
    writeLink();
  } else if (message.type === "end") {
    past(message);
  } else if (message.error) {
    toast(message.error, true);
    if (settings) panel.show(settings);
  } else if (message.note) {
    toast(message.note);
  }
}

/** Does what the link asks for: first its scene, whose greeting leads here again. */
function follow() {
  const scene = linkParts().scene ?? hello.scene;
  if (scene !== hello.scene && hello.scenes.some(({ name }) => name === scene)) return send({ type: "open", scene });
  const asked = readLink();
  if (Object.keys(asked).length) request(asked);
}

addEventListener("hashchange", () => hello && location.hash !== written && follow());

/** The scenes of a page without a server. */
function showScenes() {
  $("scene").replaceChildren(...hello.scenes.map(({ name, label }) => new Option(label, name, false, name === hello.scene)));
}

/** Leaves everything that the link holds: it is of another scene. */
function forget() {
  history.replaceState(null, "", location.pathname + location.search);
}

$("scene").onchange = () => {
  forget();
  send({ type: "open", scene: $("scene").value });
};
$("open").onclick = () => $("weights").click();
$("weights").onchange = async () => {
  const [file] = $("weights").files;
  if (!file) return;
  const bytes = new Uint8Array(await file.arrayBuffer());
  $("weights").value = "";
  forget();
  send({ type: "weights", name: file.name, bytes });
};

function build() {
  display.build(settings.runners.map((runner) => hello.agents[runner.agent].name), hello);
  covers.attach(display.runners);
  latest = null;
  scores = new Map();
  past();
}

function show(now) {
  panel.show(now);
  display.explain(now.effects);
  covers.set(now.shifts.map(readShift).filter(isCover));
  $("play").textContent = now.paused ? "Play" : "Pause";
  $("play").setAttribute("aria-pressed", String(!now.paused));
  const changes = [...now.variants, ...now.shifts.map((text) => text.replace(/:(x|y|width|height|size)=[^:@]*/g, ""))];
  $("where").textContent = [hello.world, now.picture, ...changes].join("  ·  ");
}

/** Tracks that were driven to their end. */
function past(end) {
  if (end) {
    scores.delete(end.seed);
    scores.set(end.seed, end.runners.map((runner) => runner.score));
  }
  const rows = [...scores].slice(-12).reverse();
  $("pastbox").hidden = rows.length === 0;
  const two = settings.runners.length > 1;
  $("past0").textContent = two ? hello.agents[settings.runners[0].agent].name : "score";
  $("past1").textContent = two ? hello.agents[settings.runners[1].agent].name : "";
  $("past").replaceChildren(...rows.map(([seed, results]) => {
    const row = document.createElement("tr");
    const again = Object.assign(document.createElement("button"), { textContent: seed, title: "Drive it again", onclick: () => request({ seed }) });
    row.append(...[again, ...results.map((score) => score.toFixed(1))].map((content) => {
      const cell = document.createElement("td");
      cell.append(content);
      return cell;
    }));
    return row;
  }));
}

let hush;
function toast(text, bad = false) {
  const box = $("toast");
  box.textContent = text;
  box.className = `toast on${bad ? " bad" : ""}`;
  clearTimeout(hush);
  hush = setTimeout(() => box.classList.remove("on"), bad ? 6000 : 2600);
}

// ── the link holds everything ──

let written = "";

function writeLink() {
  const { seed, picture, variants, shifts, runners, speed, auto, effects } = settings;
  const parts = hello.scene ? { scene: hello.scene, seed, picture } : { seed, picture };
  if (variants.length) parts.variants = variants.join("+");
  if (shifts.length) parts.shifts = shifts.join("+");
  parts.agents = runners.map((runner) => (runner.k ? `${runner.agent}:${runner.k}` : runner.agent)).join(",");
  if (speed !== 1) parts.speed = speed || "max";
  if (!auto) parts.auto = "off";
  parts.effects = effects ? "on" : "off";
  const shown = Object.entries(display.show).filter(([, on]) => on).map(([name]) => name);
  parts.show = shown.join(",") || "nothing";
  written = `#${Object.entries(parts).map(([key, value]) => `${key}=${encodeURI(value)}`).join("&")}`;
  if (location.hash !== written) history.replaceState(null, "", `${location.pathname}${location.search}${written}`);
}

function linkParts() {
  return Object.fromEntries(location.hash.slice(1).split("&").filter((part) => part.includes("=")).map((part) => {
    const at = part.indexOf("=");
    try {
      return [part.slice(0, at), decodeURIComponent(part.slice(at + 1))];
    } catch {
      return ["", ""];
    }
  }));
}

function readLink() {
  const parts = linkParts();
  const change = {};
  const list = (text) => text.split("+").filter(Boolean);
  if (/^\d+$/.test(parts.seed ?? "")) change.seed = Number(parts.seed);
  if (parts.picture) change.picture = parts.picture;
  if (parts.variants !== undefined) change.variants = list(parts.variants);
  if (parts.shifts !== undefined) change.shifts = list(parts.shifts);
  if (parts.agents) {
    change.runners = parts.agents.split(",").map((text) => {
      const [agent, k] = text.split(":");
      return { agent: Number(agent) || 0, k: k ? Number(k) || null : null };
    });
  }
  if (parts.speed) change.speed = parts.speed === "max" ? 0 : Number(parts.speed) || 1;
  if (parts.auto) change.auto = parts.auto !== "off";
  if (parts.effects) change.effects = parts.effects !== "off";
  if (parts.show) for (const name of Object.keys(display.show)) look(name, parts.show.split(",").includes(name));
  return change;
}

// ── what is shown over the agent's picture ──

function look(name, on = !display.show[name]) {
  display.show[name] = on;
  $(`show-${name}`).checked = on;
}

for (const name of Object.keys(display.show)) {
  $(`show-${name}`).onchange = () => {
    look(name, $(`show-${name}`).checked);
    again();
    writeLink();
  };
}

// ── covers ──

let resting = 0;
const covers = new Covers((list, done) => {
  const now = performance.now();
  if (!done && now - resting < 40) return;
  resting = now;
  const others = settings.shifts.filter((text) => !isCover(readShift(text)));
  settings = { ...settings, shifts: [...others, ...list.map(writeShift)] };
  panel.settings = settings;
  request({ shifts: settings.shifts });
}, tool);

function uncover() {
  request({ shifts: settings.shifts.filter((text) => !isCover(readShift(text))) });
}

function take(name) {
  const wanted = tool() === name ? "" : name;
  document.querySelector(`input[name=tool][value="${wanted}"]`).checked = true;
}

// ── the wheel ──

const wheel = new Wheel({
  onDrive: (action) => send({ type: "drive", runner: 0, action }),
  onRelease: () => send({ type: "release" }),
  onHeld: (held) => {
    $("wheel").textContent = held ? "Give it back" : "Take the wheel";
    $("wheel").setAttribute("aria-pressed", String(held));
    $("pads").hidden = !held;
    if (held && settings.paused) request({ paused: false });
  },
});
for (const pad of document.querySelectorAll("#pads button")) {
  const { key } = pad.dataset;
  pad.onpointerdown = (event) => {
    event.preventDefault();
    pad.setPointerCapture(event.pointerId);
    pad.classList.add("down");
    wheel.press(key);
  };
  pad.onpointerup = pad.onpointercancel = () => {
    pad.classList.remove("down");
    wheel.lift(key);
  };
}
addEventListener("blur", () => wheel.keys.clear());

// ── buttons and keys ──

const acts = {
  play: () => request({ paused: !settings.paused }),
  step: () => send({ type: "step" }),
  restart: () => send({ type: "restart" }),
  dice: () => request({ seed: Math.floor(Math.random() * 100_000) }),
  wheel: () => (wheel.held ? wheel.give() : wheel.take()),
  film: () => send({ type: "film" }),
  help: () => $("keys").showModal(),
  uncover,
  reload: () => location.reload(),
  theme: () => setTheme(document.documentElement.dataset.theme === "dark" ? "light" : "dark"),
  share: async () => {
    writeLink();
    try {
      await navigator.clipboard.writeText(location.href);
      toast("Link copied");
    } catch {
      toast("Copy the address of this page: it holds everything");
    }
  },
};
for (const [id, act] of Object.entries(acts)) $(id).onclick = act;

const overlay = (name) => () => {
  look(name);
  again();
  writeLink();
};
const keys = {
  " ": acts.play, ".": acts.step, r: acts.restart, n: acts.dice, h: acts.wheel, Escape: () => wheel.give(),
  p: overlay("patches"), i: overlay("heat"), u: overlay("dim"), m: () => request({ effects: !settings.effects }),
  "[": () => panel.setK(panel.k() - 1), "]": () => panel.setK(panel.k() + 1),
  b: () => take("bar"), o: () => take("blob"), Delete: uncover, Backspace: uncover,
  c: () => panel.compare(), l: acts.share, v: acts.film, t: acts.theme, "?": acts.help,
  "+": () => panel.faster(1), "=": () => panel.faster(1), "-": () => panel.faster(-1),
};

/** Whether an element needs the key for itself. */
function typing(target, key) {
  if (target.closest("dialog")) return true;
  if (target.matches("input[type=number], select")) return key !== "Escape";
  if (target.matches("input[type=range], input[type=radio]") && key.startsWith("Arrow")) return true;
  return target.matches("input, button, summary, a") && (key === " " || key === "Enter");
}

// What the mouse pressed lets go of the keys, so that they drive and play again.
addEventListener("click", (event) => {
  const at = document.activeElement;
  if (event.detail > 0 && at?.matches("button, input:not([type=number])")) at.blur();
});

const named = (key) => (key.length === 1 ? key.toLowerCase() : key);
addEventListener("keydown", (event) => {
  const key = named(event.key);
  if (!settings || event.ctrlKey || event.metaKey || event.altKey || typing(event.target, key)) return;
  if (Wheel.drives(key)) {
    event.preventDefault();
    if (!event.repeat) wheel.press(key);
  } else if (keys[key]) {
    event.preventDefault();
    if (!event.repeat || key === "." || key === "[" || key === "]") keys[key]();
  }
});
addEventListener("keyup", (event) => wheel.lift(named(event.key)));

// ── dark and light ──

function setTheme(theme, keep = true) {
  document.documentElement.dataset.theme = theme;
  display.repaint();
  again();
  if (keep) {
    try {
      localStorage.setItem("foveate-theme", theme);
    } catch {
      // A browser that keeps nothing forgets the theme, too.
    }
  }
}

// ── frames ──

const drawn = [];

function frame(now) {
  latest = now;
  display.draw(now, settings.paused);
  covers.aspect = now.runners[0].seen.width / Math.max(now.runners[0].seen.height, 1) || 1;
  const time = performance.now();
  drawn.push(time);
  while (drawn[0] < time - 1000) drawn.shift();
}

/** Draws the last frame once more, for another look at it. */
function again() {
  if (latest) display.draw(latest, settings.paused);
}

setInterval(() => {
  const time = performance.now();
  while (drawn.length && drawn[0] < time - 1000) drawn.shift();
  if ($("rate").textContent !== String(drawn.length)) $("rate").textContent = drawn.length;
  $("dot").classList.toggle("live", drawn.length > 0);
}, 500);

// ── begin ──

let theme = matchMedia("(prefers-color-scheme: light)").matches ? "light" : "dark";
try {
  theme = localStorage.getItem("foveate-theme") ?? theme;
} catch {
  // As above.
}
setTheme(theme, false);
addEventListener("resize", () => covers.draw());

send = connect({
  message: onMessage,
  frame,
  film: (blob) => {
    const link = Object.assign(document.createElement("a"), { href: URL.createObjectURL(blob), download: `foveate-${settings.seed}.mp4` });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
    toast(`Saved ${link.download}, ${(blob.size / 1e6).toFixed(1)} MB`);
  },
  gone: (why) => {
    if (why) $("gone-why").textContent = why;
    $("gone").hidden = false;
    $("reload").focus();
  },
});
