// What is drawn: the world, what the agent sees and looks at, its action, and the traces below.
//
// The pictures and the wheel move with every frame. Numbers and charts, which make the browser lay out and paint the
// page rebuilt, follow a few times a second: that is as fast as they can be read.

import { paint } from "/frame.js";

const RUNNER_COLORS = ["--accent", "--other"];
const TRACE = 250;
const NO_SENSOR = 0xffffffff;
const SEEN = "what the agent sees";
const SEEN_WITH_EFFECTS = "what the agent sees. White: what it attends to; orange frame: without it the action changes";
/** Most sensors that are drawn. */
const MOST_SENSORS = 32;
const TEXT_MS = 120;
const CHART_MS = 200;

/** Sizes of canvases in CSS pixels, as the browser tells them: to ask for them would make it lay out the page. */
const sizes = new WeakMap();

/** Makes a canvas as sharp as the screen; returns its context, and its size in CSS pixels. */
function sharp(canvas, options) {
  const ratio = Math.min(devicePixelRatio || 1, 2);
  const { width, height } = sizes.get(canvas) ?? { width: 0, height: 0 };
  const [w, h] = [Math.max(1, Math.round(width * ratio)), Math.max(1, Math.round(height * ratio))];
  if (canvas.width !== w || canvas.height !== h) [canvas.width, canvas.height] = [w, h];
  const context = canvas.getContext("2d", options);
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  return { context, width, height };
}

/** A picture that is painted pixel by pixel, of one size until it is asked for another. */
class Pixels {
  /** Its bytes, R, G, B and opacity, and the same as one u32 a pixel. */
  sized(width, height) {
    if (this.image?.width !== width || this.image.height !== height) {
      this.image = new ImageData(width, height);
      this.bytes = this.image.data.fill(255);
      this.words = new Uint32Array(this.bytes.buffer);
    }
    return this;
  }

  /** Puts it onto `canvas`, which takes its size. */
  put(canvas) {
    const { image } = this;
    if (canvas.width !== image.width || canvas.height !== image.height) [canvas.width, canvas.height] = [image.width, image.height];
    canvas.getContext("2d", { alpha: false }).putImageData(image, 0, 0);
  }
}

/** A weight from −1 (blue) over 0 (light) to 1 (red), as in reports. */
function diverging(value) {
  const [part, end] = [Math.min(Math.abs(value) || 0, 1), value < 0 ? [38, 84, 164] : [190, 60, 18]];
  return [244, 243, 240].map((zero, i) => zero + part * (end[i] - zero));
}

/** Makes `act` happen at most every `ms`, and once more when the last call was too early. */
function seldom(ms, act) {
  let [last, later] = [-Infinity, 0];
  const now = () => {
    clearTimeout(later);
    [last, later] = [performance.now(), 0];
    act();
  };
  return (urgent) => {
    const rest = last + ms - performance.now();
    if (urgent || rest <= 0) now();
    else later ||= setTimeout(now, rest);
  };
}

/** Writes `text` if it is not there yet. */
function put(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

const color = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const fixed = (x, digits = 2) => (x < 0 ? "−" : "") + Math.abs(x).toFixed(digits);

export class Display {
  constructor(root, { onView, onSize }) {
    this.root = root;
    this.runners = [];
    this.show = { patches: true, heat: false, dim: false };
    this.pixels = document.createElement("canvas");
    this.heat = document.createElement("canvas");
    this.charts = Object.fromEntries(["curve", "trace", "ranks"].map((id) => [id, document.getElementById(id)]));
    this.watch = new ResizeObserver((changes) => {
      for (const { target, contentRect } of changes) sizes.set(target, contentRect);
      const box = sizes.get(this.runners[0]?.world);
      if (!box?.width) return;
      // As sharp as it is shown, within reason: twice the pixels are twice the work.
      const width = Math.min(Math.max(Math.round(box.width * Math.min(devicePixelRatio || 1, 1.5)), 160), 800);
      onView(width, Math.round(width * 0.8));
      onSize();
    });
    this.updateTextNow = seldom(TEXT_MS, () => this.updateText());
    this.chartNow = seldom(CHART_MS, () => this.drawCharts());
  }

  /** Lays out one runner for each agent. */
  build(names, { actions, maxSteps, sees, sensors, choices }) {
    this.watch.disconnect();
    // A frame of the runners before has nothing to do with these.
    this.frame = null;
    this.sensors = sensors;
    this.isNumbers = sees === "numbers";
    this.isGrid = sees === "grid";
    this.maxSteps = maxSteps || 1000;
    this.actions = actions;
    this.hasChoices = choices;
    this.isCar = actions[0]?.name === "steer";
    document.getElementById("first").textContent = this.isCar ? "Steering" : `Action ${actions[0]?.name ?? ""}`;
    document.getElementById("ranked").textContent = this.isNumbers ? "Attention by rank" : "Votes by rank";
    const template = document.getElementById("runner");
    this.runners = names.map((name) => {
      const element = template.content.firstElementChild.cloneNode(true);
      const find = (selector) => element.querySelector(selector);
      find(".who").textContent = name;
      find(".who").title = name;
      element.setAttribute("aria-label", name);
      if (!this.isCar) find(".steering").style.display = "none";
      if (this.isNumbers) {
        find(".seen .picture").ariaLabel = "The numbers that the agent gets, in the order in which it gets them, and its attention to each";
        find(".original .picture").ariaLabel = "Weights of all sensors over time, in the world's own order";
        put(find(".seen figcaption"), "what the agent gets");
        put(find(".original figcaption"), `weights over ${TRACE} steps, in the world's order; red: positive, blue: negative`);
      }
      if (this.isGrid) {
        find(".seen .picture").ariaLabel = "A row for each node: the view with its cell framed, then for each head of the network where it attends to";
        put(find(".seen figcaption"), "the view, and where its cells attend to, by head");
      }
      const fills = actions.map((action) => {
        const bar = document.createElement("div");
        bar.className = "bar";
        const [label, rail, fill, without, value] = ["span", "div", "div", "i", "output"].map((tag) => document.createElement(tag));
        label.textContent = action.name;
        [rail.className, fill.className, without.className, without.hidden] = ["rail", "fill", "without", true];
        rail.append(fill, without);
        bar.append(label, rail, value);
        find(".bars").append(bar);
        return { fill, without, value };
      });
      return {
        element, fills, curve: [], trace: [], effects: [], history: [], most: [], last: -1, worldPixels: new Pixels(), seenPixels: new Pixels(),
        score: find(".score"), steps: find(".steps"), state: find(".state"), turn: find(".steering"), effect: find(".effect"),
        world: find(".world .picture"), seen: find(".seen .picture"), original: find(".original .picture"), originalPixels: new Pixels(),
        covers: [find(".world .covers"), find(".seen .covers")],
      };
    });
    this.root.classList.toggle("two", names.length > 1);
    this.root.replaceChildren(...this.runners.map((runner) => runner.element));
    for (const canvas of [...this.runners.flatMap((runner) => [runner.world, runner.seen, runner.original]), ...Object.values(this.charts)]) this.watch.observe(canvas);
  }

  /** Says what frames mean. */
  explain(effects) {
    if (this.isNumbers || this.isGrid) return;
    for (const runner of this.runners) put(runner.element.querySelector(".seen figcaption"), effects ? SEEN_WITH_EFFECTS : SEEN);
  }

  /** Takes the colours of the theme. */
  repaint() {
    const [line, text, muted, ground] = ["--line", "--text", "--muted", "--raised"].map(color);
    this.palette = { line, text, muted, ground, runners: RUNNER_COLORS.map(color) };
  }

  draw(frame, paused) {
    [this.frame, this.paused] = [frame, paused];
    frame.runners.forEach((data, i) => {
      const runner = this.runners[i];
      if (!runner) return;
      this.drawWorld(runner, data);
      const original = data.order.patch > 0 || data.numbers.all > 0;
      if (runner.element.classList.contains("with-original") !== original) runner.element.classList.toggle("with-original", original);
      if (data.numbers.all) this.drawNumbers(runner, data);
      else this.drawSeen(runner, data);
      this.drawAction(runner, data);
      this.remember(runner, data);
    });
    this.updateTextNow(paused);
    this.chartNow(paused);
  }

  drawWorld(runner, { view }) {
    if (!view) return;
    const pixels = runner.worldPixels.sized(view.width, view.height);
    paint(view, pixels.words);
    pixels.put(runner.world);
  }

  drawSeen(runner, { seen, attention, order }) {
    if (!seen.width) return;
    const pixels = runner.seenPixels.sized(seen.width, seen.height);
    const { rgb } = seen;
    for (let from = 0, to = 0; from < rgb.length; from += 3, to++) {
      pixels.words[to] = rgb[from] | (rgb[from + 1] << 8) | (rgb[from + 2] << 16) | 0xff000000;
    }
    // The grid may have been laid over a smaller copy of the picture.
    const place = (index, sx, sy) => [
      (index % attention.columns) * attention.stride * sx, Math.floor(index / attention.columns) * attention.stride * sy, attention.patch * sx, attention.patch * sy,
    ];
    this.drawPicture(runner.seen, pixels, attention, place);
    if (order.patch) this.drawOriginal(runner, pixels, attention, order);
  }

  /** The picture with every patch back at its place, and the same patches marked. */
  drawOriginal(runner, { words, image }, attention, { patch, sensors }) {
    const columns = image.width / patch;
    const frame = (sensors.length / columns) * patch;
    const original = runner.originalPixels.sized(image.width, image.height);
    original.words.fill(0xff000000);
    for (let top = 0; top < image.height; top += frame) {
      sensors.forEach((to, from) => {
        const at = (index) => (top + Math.floor(index / columns) * patch) * image.width + (index % columns) * patch;
        for (let line = 0; line < patch; line++) {
          const start = at(from) + line * image.width;
          original.words.set(words.subarray(start, start + patch), at(to) + line * image.width);
        }
      });
    }
    // The shuffled patch that the middle of an attended one lies in.
    const { stride } = attention;
    const [across, down] = [image.width / attention.width, image.height / attention.height];
    const home = (index) => {
      const x = ((index % attention.columns) * stride + attention.patch / 2) * across;
      const y = (Math.floor(index / attention.columns) * stride + attention.patch / 2) * down;
      const top = Math.floor(y / frame) * frame;
      return { to: sensors[Math.floor((y - top) / patch) * columns + Math.floor(x / patch)] ?? 0, top };
    };
    const place = (index, sx, sy) => {
      const { to, top } = home(index);
      const size = patch / across;
      return [(to % columns) * size * sx, (top / down + Math.floor(to / columns) * size) * sy, size * sx, (patch / down) * sy];
    };
    const tiled = attention.stride === attention.patch && attention.columns === columns && attention.columns * attention.rows === sensors.length;
    const importance = new Float32Array(attention.importance.length);
    if (tiled) sensors.forEach((to, from) => { importance[to] = attention.importance[from]; });
    // A map of places that overlap has no meaning in another order.
    this.drawPicture(runner.original, original, { ...attention, importance }, place, tiled);
  }

  /** A picture, and over it what is asked for of its attention. */
  drawPicture(canvas, pixels, attention, place, heat = true) {
    const { context, width, height } = sharp(canvas, { alpha: false });
    const small = this.pixels;
    pixels.put(small);
    // Maps hold letters.
    context.imageSmoothingEnabled = this.isGrid;
    context.drawImage(small, 0, 0, width, height);
    if (!attention.columns) return;
    const [sx, sy] = [width / attention.width, height / attention.height];
    const at = (index) => place(index, sx, sy);
    if (this.show.dim) this.drawDim(context, width, height, attention, small, at);
    // Soft attention selects nothing: its map is all that there is to show.
    const soft = !attention.selected.length && this.show.patches;
    if (heat && (this.show.heat || soft)) this.drawHeat(context, attention, sx, sy);
    if (this.show.patches) this.drawPatches(context, attention, at);
  }

  /** Everything that the controller is not told about, gone dark. */
  drawDim(context, width, height, attention, small, place) {
    context.fillStyle = "rgb(8 10 14 / .88)";
    context.fillRect(0, 0, width, height);
    for (const index of attention.selected) {
      const [x, y, w, h] = place(index);
      const [across, down] = [small.width / width, small.height / height];
      context.drawImage(small, x * across, y * down, w * across, h * down, x, y, w, h);
    }
  }

  /** What a sensor is called; `copy` counts those of the same name. */
  sensorName(sensor, copy) {
    if (sensor === NO_SENSOR) return `extra ${copy + 1}`;
    const name = this.sensors[sensor] ?? `sensor ${sensor}`;
    return copy ? `${name} (${copy + 1})` : name;
  }

  /** The sensors in the order in which the agent gets them: name, value, attention, and weights for each query. */
  sensorsOf({ order, numbers: { values, queries, weights } }) {
    const copies = new Map();
    return values.map((value, at) => {
      const sensor = order.sensors[at] ?? (order.sensors.length ? NO_SENSOR : at);
      const copy = copies.get(sensor) ?? 0;
      copies.set(sensor, copy + 1);
      const each = Array.from({ length: queries }, (_, query) => weights[query * values.length + at]);
      return { sensor, copy, at, name: this.sensorName(sensor, copy), value, weights: each, attention: each.reduce((sum, weight) => sum + Math.abs(weight), 0) };
    });
  }

  /** Numbers as bars, in the order in which the agent gets them. */
  drawNumbers(runner, data) {
    const { context, width, height } = sharp(runner.seen, { alpha: false });
    const { line, text, muted, ground, runners: colors } = this.palette;
    context.fillStyle = ground;
    context.fillRect(0, 0, width, height);
    const sensors = this.sensorsOf(data);
    const shown = sensors.slice(0, MOST_SENSORS);
    const total = sensors.reduce((sum, { attention }) => sum + attention, 0) || 1;
    const largest = sensors.reduce((most, { attention }) => Math.max(most, attention), 0) || 1;
    const [left, margin, head] = [width * 0.36, 12, 26];
    const [middle, size] = [left + (width - left - margin) * 0.25, (width - left - margin) * 0.22];
    const start = left + (width - left - margin) * 0.55;
    // Beside the longest bar there is room for its share.
    const longest = Math.max(width - margin - start - 36, 1);
    const pitch = Math.min((height - head - margin) / Math.max(shown.length, 1), 54);
    const write = (words, x, y, color, most) => {
      context.fillStyle = color;
      context.fillText(words, x, y, most);
    };
    context.font = `12px ${getComputedStyle(document.documentElement).fontFamily}`;
    context.textBaseline = "middle";
    const hidden = data.numbers.all - shown.length;
    write(hidden ? `${shown.length} of ${data.numbers.all}` : "sensor", margin, head / 2 + 2, muted, left - 2 * margin);
    write("value", middle - 15, head / 2 + 2, muted);
    if (data.numbers.queries) write("attention", start, head / 2 + 2, muted);
    shown.forEach(({ name, value, attention }, i) => {
      const [y, tall] = [head + (i + 0.5) * pitch, Math.min(pitch * 0.5, 16)];
      runner.most[i] = Math.max(runner.most[i] ?? 1, Math.abs(value) || 0);
      write(name, margin, y, text, left - 2 * margin);
      context.fillStyle = line;
      context.fillRect(middle - size, y - tall / 2, 2 * size, tall);
      context.fillStyle = colors[1];
      const long = (size * value) / runner.most[i] || 0;
      context.fillRect(Math.min(middle, middle + long), y - tall / 2, Math.abs(long), tall);
      if (!data.numbers.queries) return;
      context.fillStyle = colors[0];
      const share = (longest * attention) / largest;
      context.fillRect(start, y - tall / 2, share, tall);
      write(`${Math.round((100 * attention) / total)} %`, start + share + 6, y, muted);
    });
  }

  /** The weights of all sensors over the last steps, in the world's order: a strip for each sensor, a row for each query. */
  drawHistory(runner) {
    const { context, width, height } = sharp(runner.original, { alpha: false });
    const { line, text, ground, runners: colors } = this.palette;
    context.fillStyle = ground;
    context.fillRect(0, 0, width, height);
    const { history } = runner;
    if (!history.length) return;
    const sensors = history.at(-1).sensors.slice(0, MOST_SENSORS);
    const queries = sensors[0]?.weights.length ?? 0;
    const [left, margin] = [width * 0.3, 10];
    const [wide, pitch] = [width - left - margin, (height - 2 * margin) / Math.max(sensors.length, 1)];
    context.font = `12px ${getComputedStyle(document.documentElement).fontFamily}`;
    context.textBaseline = "middle";
    const most = history.reduce((most, { sensors }) => sensors.reduce((most, { weights }) => weights.reduce((most, weight) => Math.max(most, Math.abs(weight)), most), most), 1e-30);
    sensors.forEach(({ name }, i) => {
      const [top, tall] = [margin + i * pitch, pitch - 4];
      context.fillStyle = text;
      context.fillText(name, margin, top + tall / 2, left - 2 * margin);
      if (!queries) {
        const values = history.map(({ sensors }) => sensors[i].value);
        const [low, high] = [Math.min(...values), Math.max(...values)];
        context.strokeStyle = line;
        context.strokeRect(left, top, wide, tall);
        plot({ context }, history.map(({ step }, at) => [
          left + wide * (1 - (runner.last - step) / TRACE), top + tall - 2 - ((tall - 4) * (values[at] - low)) / Math.max(high - low, 1e-12),
        ]), colors[1], false);
        return;
      }
      const strip = runner.originalPixels.sized(TRACE + 1, queries);
      strip.bytes.fill(0);
      const column = (step) => TRACE - (runner.last - step);
      const from = column(history[0].step);
      history.forEach(({ step, sensors }, moment) => {
        // A page that is sent fewer frames than there are steps shows what it has.
        const begin = moment ? column(history[moment - 1].step) + 1 : from;
        sensors[i].weights.forEach((weight, query) => {
          const color = [...diverging(weight / most), 255];
          for (let x = begin; x <= column(step); x++) strip.bytes.set(color, 4 * (query * (TRACE + 1) + x));
        });
      });
      strip.put(this.pixels);
      context.fillStyle = line;
      context.fillRect(left, top, wide, tall);
      context.imageSmoothingEnabled = false;
      const columns = TRACE + 1 - from;
      context.drawImage(this.pixels, from, 0, columns, queries, left + (wide * from) / (TRACE + 1), top, (wide * columns) / (TRACE + 1), tall);
    });
  }

  drawHeat(context, attention, sx, sy) {
    const { columns, rows, importance, patch, stride } = attention;
    const heat = this.heat;
    [heat.width, heat.height] = [columns, rows];
    const image = new ImageData(columns, rows);
    const most = importance.reduce((a, b) => Math.max(a, b), 0);
    const least = importance.reduce((a, b) => Math.min(a, b), most);
    importance.forEach((value, i) => {
      const v = (value - least) / Math.max(most - least, 1e-12);
      image.data.set([255, 120 + 100 * v, 40 + 150 * v * v, 235 * v * v * v], 4 * i);
    });
    heat.getContext("2d").putImageData(image, 0, 0);
    // On a darker picture it glows.
    context.fillStyle = "rgb(8 10 14 / .45)";
    context.fillRect(0, 0, columns * stride * sx + patch * sx, rows * stride * sy + patch * sy);
    context.imageSmoothingEnabled = true;
    context.imageSmoothingQuality = "high";
    // Each value lies at the centre of its patch.
    const margin = (patch - stride) / 2;
    context.drawImage(heat, margin * sx, margin * sy, columns * stride * sx, rows * stride * sy);
  }

  /** White is the claim: how much the agent attends to a patch. Its frame is the measured effect, where there is one. */
  drawPatches(context, attention, place) {
    if (attention.effects.length) {
      const soft = !attention.selected.length;
      for (let rank = attention.effects.length - 1; rank >= 0; rank--) {
        const { patch, effect } = attention.effects[rank];
        const [x, y, w, h] = place(patch);
        if (!soft) {
          context.fillStyle = `rgb(255 255 255 / ${0.62 * (1 - rank / attention.effects.length)})`;
          context.fillRect(x, y, w, h);
        }
        const line = 1 + 3 * effect;
        context.lineWidth = line;
        context.strokeStyle = `rgb(${70 + 185 * effect} ${78 + 42 * effect} ${110 - 80 * effect})`;
        context.strokeRect(x + line / 2, y + line / 2, w - line, h - line);
      }
      return;
    }
    const count = attention.selected.length;
    context.lineWidth = 1.75;
    for (let rank = count - 1; rank >= 0; rank--) {
      const [x, y, w, h] = place(attention.selected[rank]);
      const weight = 1 - rank / count;
      context.fillStyle = `rgb(255 255 255 / ${0.62 * weight})`;
      context.fillRect(x, y, w, h);
      context.strokeStyle = `rgb(255 182 77 / ${0.3 + 0.7 * weight})`;
      context.strokeRect(x + 0.9, y + 0.9, w - 1.8, h - 1.8);
    }
  }

  /** How far the interventions move the action: the largest change of a number as a part of its range; of choices 1 for another one. */
  effectOf({ action, undisturbed }) {
    if (!undisturbed.length) return null;
    const best = (scores) => scores.indexOf(Math.max(...scores));
    if (this.hasChoices) return best(action) === best(undisturbed) ? 0 : 1;
    return Math.max(...undisturbed.map((value, i) => Math.abs(action[i] - value) / (this.actions[i].high - this.actions[i].low)));
  }

  drawAction(runner, { action, undisturbed }) {
    action.forEach((value, i) => {
      const bar = runner.fills[i];
      if (!bar) return;
      const { low, high } = this.actions[i];
      const at = (x) => Math.min(Math.max((x - low) / (high - low), 0), 1);
      const [from, to] = [at(Math.max(low, Math.min(0, high))), at(value)];
      const [left, size] = [Math.min(from, to), Math.abs(to - from)];
      bar.fill.style.transform = `translateX(${100 * left}%) scaleX(${size})`;
      if (bar.without.hidden !== !undisturbed.length) bar.without.hidden = !undisturbed.length;
      if (undisturbed.length) bar.without.style.transform = `translateX(${100 * at(undisturbed[i])}%)`;
    });
    if (this.isCar) runner.turn.style.transform = `rotate(${(100 * (action[0] ?? 0)).toFixed(1)}deg)`;
  }

  /** Everything that is text. */
  updateText() {
    this.frame?.runners.forEach((data, i) => this.runners[i] && this.updateRunnerText(this.runners[i], data));
  }

  updateRunnerText(runner, data) {
    // Rewards of grid worlds are at most 1.
    put(runner.score, fixed(data.score, this.isGrid ? 2 : 0));
    put(runner.steps, String(data.steps));
    data.action.forEach((value, i) => runner.fills[i] && put(runner.fills[i].value, fixed(value)));
    const [text, kind] = data.broken ? ["stands still", "over"]
      : data.over && data.terminated && !this.isCar ? ["over", "over"]
      : data.over && data.terminated && data.score > 0 ? ["lap done", "done"]
      : data.over && data.terminated ? ["off the field", "over"]
      : data.over ? ["time is up", ""]
      : data.held ? ["you drive", "held"]
      : this.paused ? ["paused", ""] : ["drives", ""];
    put(runner.state, text);
    runner.state.className = `state ${kind}`;
    this.updateEffect(runner, data);
  }

  updateEffect(runner, data) {
    const now = this.effectOf(data);
    if (now === null) {
      put(runner.effect, "");
      return;
    }
    const percent = (part) => `${Math.round(100 * part)} %`;
    const mean = runner.effects.reduce((sum, [, effect]) => sum + effect, 0) / Math.max(runner.effects.length, 1);
    const name = (scores) => this.actions[scores.indexOf(Math.max(...scores))].name;
    const text = this.hasChoices
      ? `${now ? `“${name(data.action)}” instead of “${name(data.undisturbed)}”` : "the same choice"}; other choices in ${percent(mean)} of ${runner.effects.length} steps`
      : `${percent(now)} of the range; ${percent(mean)} on average over ${runner.effects.length} steps`;
    if (runner.effect.dataset.text === text) return;
    runner.effect.dataset.text = text;
    const title = document.createElement("b");
    title.textContent = "effect ";
    runner.effect.replaceChildren(title, text);
  }

  remember(runner, data) {
    const { steps, score, action, undisturbed, numbers } = data;
    if (steps < runner.last) [runner.curve, runner.trace, runner.effects, runner.history, runner.most] = [[], [], [], [], []];
    const effect = this.effectOf(data);
    // While the lab is paused, another intervention is another decision of the same step.
    if (runner.effects.at(-1)?.[0] === steps) runner.effects.pop();
    if (effect === null) runner.effects = [];
    else runner.effects.push([steps, effect]);
    while (runner.effects.length > TRACE) runner.effects.shift();
    if (numbers.all) {
      const sensors = this.sensorsOf(data).sort((a, b) => a.sensor - b.sensor || a.copy - b.copy);
      const before = runner.history.at(-1)?.sensors;
      if (before && (before.length !== sensors.length || before[0]?.weights.length !== sensors[0]?.weights.length)) runner.history = [];
      if (steps === runner.last) runner.history.pop();
      runner.history.push({ step: steps, sensors });
      while (runner.history[0].step < steps - TRACE) runner.history.shift();
    }
    if (steps !== runner.last) {
      runner.curve.push([steps, score]);
      runner.trace.push([steps, action[0] ?? 0, undisturbed[0]]);
      while (runner.trace.length && runner.trace[0][0] < steps - TRACE) runner.trace.shift();
      if (runner.curve.length > 4000) runner.curve = runner.curve.filter((_, i) => i % 2 === 0);
    }
    runner.last = steps;
  }

  drawCharts() {
    const { frame, charts } = this;
    if (!frame) return;
    const { line, runners: colors } = this.palette;
    const $ = (id) => document.getElementById(id);

    const curve = sharp(charts.curve);
    curve.context.clearRect(0, 0, curve.width, curve.height);
    const all = this.runners.flatMap((runner) => runner.curve.map(([, score]) => score));
    const [low, high] = [Math.min(0, ...all), Math.max(100, ...all)];
    const steps = Math.max(this.maxSteps, ...this.runners.map((runner) => runner.last));
    const y = (score) => 3 + (curve.height - 6) * (1 - (score - low) / (high - low));
    rule(curve, y(0), line);
    if (this.isCar && high > 600) rule(curve, y(900), line, [3, 4]);
    this.runners.forEach((runner, i) => plot(curve, runner.curve.map(([step, score]) => [(step / steps) * curve.width, y(score)]), colors[i]));
    put($("scores"), this.runners.length > 1 ? frame.runners.map((runner) => fixed(runner.score, 0)).join(" · ") : `of ${steps} steps`);

    const trace = sharp(charts.trace);
    trace.context.clearRect(0, 0, trace.width, trace.height);
    const middle = trace.height / 2;
    rule(trace, middle, line);
    const at = (runner, step, steer) => [trace.width * (1 - (runner.last - step) / TRACE), middle + (middle - 4) * Math.min(Math.max(steer, -1), 1)];
    let without = false;
    this.runners.forEach((runner, i) => {
      const unchanged = runner.trace.filter(([, , steer]) => steer !== undefined);
      without ||= unchanged.length > 0;
      plot(trace, unchanged.map(([step, , steer]) => at(runner, step, steer)), this.palette.muted, false);
      plot(trace, runner.trace.map(([step, steer]) => at(runner, step, steer)), colors[i], false);
    });
    put($("steers"), without ? "grey: without interventions" : `last 250 steps, ${this.isCar ? "right" : "more"} is down`);

    this.runners.forEach((runner, i) => frame.runners[i]?.numbers.all && this.drawHistory(runner));
    this.drawRanks(frame.runners, sharp(charts.ranks), colors, line, $("votes"));
  }

  drawRanks(runners, { context, width, height }, colors, line, out) {
    context.clearRect(0, 0, width, height);
    const shares = [];
    const band = height / runners.length;
    runners.forEach((data, i) => {
      const { attention } = data;
      const importance = data.numbers.queries ? this.sensorsOf(data).map((sensor) => sensor.attention) : attention.importance;
      const ranked = Array.from(importance.keys()).sort((a, b) => importance[b] - importance[a]);
      if (!ranked.length) return;
      const total = importance.reduce((a, b) => a + b, 0) || 1;
      const selected = new Set(attention.selected);
      shares.push(Math.round((100 * attention.selected.reduce((sum, index) => sum + importance[index], 0)) / total));
      const shown = Math.min(ranked.length, 64);
      const pitch = width / shown;
      const floor = band * (i + 1) - 1;
      for (let rank = 0; rank < shown; rank++) {
        const tall = Math.max(1.5, ((band - 6) * importance[ranked[rank]]) / importance[ranked[0]]);
        context.fillStyle = selected.has(ranked[rank]) || !selected.size ? colors[i] : line;
        context.beginPath();
        context.roundRect(rank * pitch + 0.75, floor - tall, Math.max(pitch - 1.5, 1), tall, 1);
        context.fill();
      }
    });
    const { columns, rows, selected } = runners[0].attention;
    const named = runners[0].numbers.queries ? this.sensorsOf(runners[0]) : [];
    if (!shares.length) put(out, "no attention");
    else if (named.length) put(out, `most to ${named.reduce((a, b) => (b.attention > a.attention ? b : a)).name}`);
    else if (!selected.length) put(out, `soft attention over ${columns * rows} places`);
    else put(out, `${selected.length} of ${columns * rows} hold ${shares.map((share) => `${share} %`).join(" · ")}`);
  }
}

function rule({ context, width }, y, style, dash = []) {
  context.strokeStyle = style;
  context.lineWidth = 1;
  context.setLineDash(dash);
  context.beginPath();
  context.moveTo(0, Math.round(y) + 0.5);
  context.lineTo(width, Math.round(y) + 0.5);
  context.stroke();
  context.setLineDash([]);
}

function plot({ context }, points, style, dot = true) {
  if (!points.length) return;
  context.strokeStyle = context.fillStyle = style;
  context.lineWidth = 1.75;
  context.lineJoin = "round";
  context.beginPath();
  points.forEach(([x, y], i) => (i ? context.lineTo(x, y) : context.moveTo(x, y)));
  context.stroke();
  if (!dot) return;
  const [x, y] = points.at(-1);
  context.beginPath();
  context.arc(x, y, 3, 0, 7);
  context.fill();
}
