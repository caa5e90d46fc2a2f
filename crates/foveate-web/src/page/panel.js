// The controls beside the display: they show the settings that the lab tells, and request for others.

import { isCover, readShift, writeShift } from "/input.js";

const $ = (id) => document.getElementById(id);
const SPEEDS = [[0.25, "¼"], [0.5, "½"], [1, "1×"], [2, "2×"], [4, "4×"], [0, "max"]];

const make = (tag, properties = {}, ...children) => {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...children);
  return element;
};

const fill = (range) => range.style.setProperty("--fill", `${(100 * (range.value - range.min)) / Math.max(range.max - range.min, 1e-9)}%`);

export class Panel {
  /** `request(settings)` asks the lab for a change, `send(command)` sends any other command. */
  constructor(request, send) {
    this.request = request;
    for (const [speed, label] of SPEEDS) {
      const input = make("input", { type: "radio", name: "speed", value: speed, onchange: () => request({ speed }) });
      $("speed").append(make("label", { title: speed ? `${speed} × real time` : "as fast as it goes" }, input, make("span", { textContent: label })));
    }
    $("k").oninput = () => this.setK(Number($("k").value));
    $("seed").onchange = () => {
      const seed = Math.floor(Number($("seed").value));
      if (Number.isSafeInteger(seed) && seed >= 0) request({ seed });
      else this.show(this.settings);
    };
    $("picture").onchange = () => request({ picture: $("picture").value });
    $("agent0").onchange = $("agent1").onchange = () => this.chooseAgents();
    $("effects").onchange = () => request({ effects: $("effects").checked });
    $("auto").onchange = () => request({ auto: $("auto").checked });
    $("shuffle").onclick = () => send({ type: "shuffle" });
    $("unshift").onclick = () => request({ shifts: this.settings.shifts.filter((text) => isCover(readShift(text))) });
  }

  /** Takes what the lab has to offer. */
  build(hello) {
    this.hello = hello;
    const options = hello.agents.map((agent, i) => make("option", { value: i, textContent: agent.name }));
    $("agent0").replaceChildren(...options.map((option) => option.cloneNode(true)));
    $("agent1").replaceChildren(make("option", { value: "", textContent: "nobody" }), ...options);
    $("picture").replaceChildren(...hello.pictures.map(({ name, about }) => make("option", { value: name, textContent: name, title: about })));
    $("variants").replaceChildren(...hello.variants.map(({ name, about }) => {
      const input = make("input", { type: "checkbox", value: name, onchange: () => this.vary(name, input.checked) });
      return make("label", { className: "chip", title: about }, input, make("span", { textContent: name }));
    }));
    this.rows = new Map(hello.shifts.map((shift) => {
      const range = make("input", { type: "range", min: 0, max: 5, step: 1, value: 0, id: `shift-${shift.name}` });
      const out = make("output", { textContent: "0" });
      const row = make("label", { className: "row", title: shift.about }, make("span", { textContent: shift.name.replaceAll("-", " ") }), range, out);
      range.oninput = () => this.shift(shift.name, Number(range.value));
      return [shift.name, { row, range, out, shift }];
    }));
    const kinds = [["picture", "what it sees"], ["senses", "which sensor is where"], ["action", "what becomes of its action"]];
    $("shuffle").hidden = !this.rows.has("shuffle");
    $("shifts").replaceChildren(...kinds.flatMap(([target, title]) => {
      const rows = [...this.rows.values()].filter(({ shift }) => shift.target === target).map(({ row }) => row);
      return rows.length ? [make("p", { className: "sub", textContent: title }), ...rows] : [];
    }));
  }

  vary(name, on) {
    const { variants } = this.settings;
    const others = variants.filter((text) => text.split(":")[0] !== name);
    this.request({ variants: on ? [...others, name] : others });
  }

  shift(name, severity) {
    const shifts = this.settings.shifts.map(readShift);
    const at = shifts.findIndex((shift) => shift.name === name && !isCover(shift));
    if (at >= 0) shifts.splice(at, 1, ...(severity ? [{ ...shifts[at], severity }] : []));
    else if (severity) shifts.unshift({ name, severity, knobs: {} });
    const texts = shifts.map(writeShift);
    // At once, so that quick moves build on each other and not on what the lab last told.
    this.settings = { ...this.settings, shifts: texts };
    this.request({ shifts: texts });
  }

  setK(k) {
    const most = this.most();
    if (most === null) return;
    const wanted = Math.min(Math.max(k, 1), most);
    const runners = this.settings.runners.map((runner) => ({ agent: runner.agent, k: wanted >= (this.hello.agents[runner.agent].k ?? 0) ? null : wanted }));
    this.settings = { ...this.settings, runners };
    this.request({ runners });
    this.showK();
  }

  /** Patches that the first agent tells its controller about at present. */
  k() {
    const runner = this.settings.runners[0];
    return runner.k ?? this.most();
  }

  most() {
    return this.hello.agents[this.settings.runners[0].agent].k;
  }

  chooseAgents() {
    const first = { agent: Number($("agent0").value), k: null };
    const beside = $("agent1").value;
    this.request({ runners: beside === "" ? [first] : [first, { agent: Number(beside), k: null }] });
  }

  /** Nobody beside the first agent, or the next that is another. */
  compare() {
    const { runners } = this.settings;
    if (runners.length > 1) return this.request({ runners: [runners[0]] });
    const other = this.hello.agents.findIndex((_, i) => i !== runners[0].agent);
    return this.request({ runners: [runners[0], { agent: Math.max(other, 0), k: null }] });
  }

  faster(by) {
    const at = SPEEDS.findIndex(([speed]) => speed === this.settings.speed);
    const next = SPEEDS[Math.min(Math.max((at < 0 ? 2 : at) + by, 0), SPEEDS.length - 1)];
    this.request({ speed: next[0] });
  }

  showK() {
    const most = this.most();
    // Only for an agent that can be shown fewer patches.
    $("krow").hidden = most === null;
    if (most === null) return;
    $("k").max = most;
    $("k").value = this.k();
    $("kout").textContent = this.k();
    fill($("k"));
  }

  /** Shows the settings as they are. */
  show(settings) {
    this.settings = settings;
    const { hello } = this;
    if (document.activeElement !== $("seed")) $("seed").value = settings.seed;
    for (const input of $("speed").querySelectorAll("input")) input.checked = Number(input.value) === settings.speed;
    this.showK();
    $("picture").value = settings.picture;
    $("picture").title = hello.pictures.find(({ name }) => name === settings.picture)?.about ?? "";
    for (const input of $("variants").querySelectorAll("input")) input.checked = settings.variants.some((text) => text.split(":")[0] === input.value);
    $("agent0").value = settings.runners[0].agent;
    $("agent1").value = settings.runners[1]?.agent ?? "";
    $("auto").checked = settings.auto;
    $("effects").checked = settings.effects;
    const on = new Map(settings.shifts.map(readShift).filter((shift) => !isCover(shift)).map((shift) => [shift.name, shift.severity]));
    for (const [name, { row, range, out, shift }] of this.rows) {
      const severity = on.get(name) ?? 0;
      range.value = severity;
      out.textContent = severity;
      row.classList.toggle("on", severity > 0);
      const amount = shift.amounts[Math.round(severity) - 1];
      row.title = severity ? `${shift.about}: ${amount} (${shift.unit})` : shift.about;
      range.setAttribute("aria-valuetext", severity ? `severity ${severity}, ${amount} (${shift.unit})` : "off");
      fill(range);
    }
    $("shiftcount").textContent = on.size ? `${on.size} on` : "";
  }
}
