// Hands on: covers drawn over the picture with a pointer, and the wheel held with keys or thumbs.

/** `blob:5:x=0.4:y=0.3@200` in parts. */
export function readShift(text) {
  const [body, steps] = text.split("@");
  const [name, severity, ...rest] = body.split(":");
  return { name, severity: Number(severity) || 3, knobs: Object.fromEntries(rest.map((part) => part.split("="))), steps };
}

export function writeShift({ name, severity, knobs, steps }) {
  const parts = Object.entries(knobs).map(([key, value]) => `:${key}=${typeof value === "number" ? +value.toFixed(4) : value}`);
  return `${name}:${severity}${parts.join("")}${steps ? `@${steps}` : ""}`;
}

/** Whether a shift is a cover that someone placed. */
export const isCover = ({ name, knobs }) => (name === "bar" || name === "blob") && knobs.x !== undefined;

const clamp = (x, low = 0, high = 1) => Math.min(Math.max(x, low), high);

/** Centre and size of a cover in shares of the picture. */
function box({ name, knobs }, aspect) {
  const [x, y] = [Number(knobs.x), Number(knobs.y)];
  if (name === "blob") {
    const size = Number(knobs.size ?? 0.2);
    return { x, y, w: size, h: size * aspect };
  }
  return { x, y, w: Number(knobs.width ?? 0.12), h: Number(knobs.height ?? 1) };
}

function shaped(name, x, y, w, h, aspect) {
  const [cx, cy] = [clamp(x), clamp(y)];
  const knobs = name === "blob"
    ? { x: cx, y: cy, size: clamp(Math.max(w, h / aspect), 0.02) }
    : { x: cx, y: cy, width: clamp(w, 0.01), height: clamp(h, 0.01) };
  return { name, severity: 5, knobs };
}

/** Covers over the pictures of all runners. `onChange(covers, done)` gets them while they move and when they rest. */
export class Covers {
  constructor(onChange, tool) {
    this.list = [];
    this.onChange = onChange;
    this.tool = tool;
    this.drag = null;
    this.aspect = 1;
  }

  /** Takes the runners of a display. The frame around a picture is what is pressed; its canvas is there while it shows something. */
  attach(runners) {
    this.canvases = runners.flatMap((runner) => runner.covers);
    for (const { parentElement: pad } of this.canvases) {
      pad.onpointerdown = (event) => this.down(pad, event);
      pad.onpointermove = (event) => this.move(pad, event);
      pad.onpointerup = pad.onpointercancel = (event) => this.up(pad, event);
      pad.onpointerleave = () => this.hover(pad, -1);
      pad.ondblclick = (event) => {
        const { index } = this.hit(this.at(pad, event));
        if (index >= 0) this.change(this.list.filter((_, i) => i !== index), true);
      };
    }
    this.draw();
  }

  set(covers) {
    if (this.drag) return;
    this.list = covers;
    this.draw();
  }

  at(pad, event) {
    const rect = pad.getBoundingClientRect();
    return { x: (event.clientX - rect.left) / rect.width, y: (event.clientY - rect.top) / rect.height };
  }

  /** Which cover lies at a point, and whether the point is its corner. */
  hit({ x, y }) {
    for (let index = this.list.length - 1; index >= 0; index--) {
      const b = box(this.list[index], this.aspect);
      const corner = Math.abs(x - b.x - b.w / 2) < 0.035 && Math.abs(y - b.y - b.h / 2) < 0.035;
      const [slackX, slackY] = [Math.max(b.w / 2, 0.02), Math.max(b.h / 2, 0.02)];
      if (corner || (Math.abs(x - b.x) <= slackX && Math.abs(y - b.y) <= slackY)) return { index, corner };
    }
    return { index: -1, corner: false };
  }

  down(pad, event) {
    const point = this.at(pad, event);
    const { index, corner } = this.hit(point);
    const tool = this.tool();
    if (index < 0 && !tool) return;
    event.preventDefault();
    pad.setPointerCapture(event.pointerId);
    if (index >= 0) {
      this.drag = { index, corner, from: point, box: box(this.list[index], this.aspect) };
      return;
    }
    this.list = [...this.list, shaped(tool, point.x, point.y, 0, 0, this.aspect)].slice(-8);
    this.drag = { index: this.list.length - 1, fresh: true, from: point };
  }

  move(pad, event) {
    const point = this.at(pad, event);
    if (!this.drag) {
      const { index, corner } = this.hit(point);
      this.hover(pad, index, corner);
      return;
    }
    const { index, corner, fresh, from, box: b } = this.drag;
    const { name } = this.list[index];
    const [dx, dy] = [point.x - from.x, point.y - from.y];
    let next;
    if (fresh && name === "blob") next = shaped(name, from.x, from.y, 2 * Math.abs(dx), 2 * Math.abs(dy), this.aspect);
    else if (fresh) next = shaped(name, from.x + dx / 2, from.y + dy / 2, Math.abs(dx), Math.abs(dy), this.aspect);
    else if (corner) next = shaped(name, b.x, b.y, Math.abs(b.w + 2 * dx), Math.abs(b.h + 2 * dy), this.aspect);
    else next = shaped(name, b.x + dx, b.y + dy, b.w, b.h, this.aspect);
    this.change(this.list.map((cover, i) => (i === index ? next : cover)), false);
  }

  up(pad, event) {
    if (!this.drag) return;
    const { index, fresh } = this.drag;
    const b = box(this.list[index], this.aspect);
    // A click without a drag puts down something of a useful size.
    if (fresh && b.w < 0.03 && b.h < 0.03) {
      const { name } = this.list[index];
      const [w, h] = name === "blob" ? [0.22, 0.22 * this.aspect] : [0.12, 0.5];
      this.list[index] = shaped(name, b.x, b.y, w, h, this.aspect);
    }
    this.drag = null;
    if (pad.hasPointerCapture(event.pointerId)) pad.releasePointerCapture(event.pointerId);
    this.change(this.list, true);
  }

  change(list, done) {
    this.list = list;
    this.draw();
    this.onChange(list, done);
  }

  hover(pad, index, corner = false) {
    pad.classList.toggle("drawing", index < 0 && !!this.tool());
    pad.classList.toggle("over", index >= 0 && !corner);
    pad.classList.toggle("corner", index >= 0 && corner);
    if (this.hovered !== index) {
      this.hovered = index;
      this.draw();
    }
  }

  draw() {
    for (const canvas of this.canvases ?? []) {
      const solid = canvas.closest(".world") !== null;
      // An empty canvas over a moving picture would be drawn with every frame.
      canvas.hidden = !this.list.length || !(solid || this.drag || this.hovered >= 0);
      if (canvas.hidden) continue;
      const ratio = Math.min(devicePixelRatio || 1, 2);
      const { clientWidth: width, clientHeight: height } = canvas.parentElement;
      [canvas.width, canvas.height] = [width * ratio, height * ratio];
      const context = canvas.getContext("2d");
      context.scale(ratio, ratio);
      this.list.forEach((cover, i) => {
        const b = box(cover, this.aspect);
        const [x, y, w, h] = [(b.x - b.w / 2) * width, (b.y - b.h / 2) * height, b.w * width, b.h * height];
        context.beginPath();
        if (cover.name === "blob") context.ellipse(x + w / 2, y + h / 2, w / 2, h / 2, 0, 0, 7);
        else context.rect(x, y, w, h);
        context.fillStyle = cover.name === "blob" ? "rgb(204 0 0 / .9)" : "rgb(0 0 0 / .9)";
        if (solid) context.fill();
        if (this.hovered !== i && !this.drag) return;
        context.strokeStyle = "#fff";
        context.lineWidth = 1.5;
        context.stroke();
        context.fillStyle = "#fff";
        context.fillRect(x + w - 5, y + h - 5, 10, 10);
      });
    }
  }
}

const STEER = { ArrowLeft: -1, a: -1, ArrowRight: 1, d: 1 };
const GAS = new Set(["ArrowUp", "w"]);
const BRAKE = new Set(["ArrowDown", "s"]);

/** What keys become in a world with these actions: a car's three numbers, or the only one that there is; else nothing. */
export function driving(actions) {
  if (actions[0]?.name === "steer" && actions.length === 3) return (steer, gas, brake) => [steer, gas ? 0.8 : 0, brake ? 0.6 : 0];
  if (actions.length === 1) return (steer) => [steer];
  return null;
}

/** The wheel. `onDrive(action)` while it is held, `onRelease()` when it is given back. */
export class Wheel {
  constructor({ onDrive, onRelease, onHeld }) {
    Object.assign(this, { onDrive, onRelease, onHeld, held: false, keys: new Set(), steer: 0, sent: "", action: null });
  }

  static drives(key) {
    return key in STEER || GAS.has(key) || BRAKE.has(key);
  }

  press(key) {
    if (!this.action) return;
    this.keys.add(key);
    this.take();
  }

  lift(key) {
    this.keys.delete(key);
  }

  take() {
    if (this.held || !this.action) return;
    [this.held, this.steer, this.sent] = [true, 0, ""];
    this.timer = setInterval(() => this.tick(), 20);
    this.onHeld(true);
    this.tick();
  }

  give() {
    if (!this.held) return;
    clearInterval(this.timer);
    this.held = false;
    this.keys.clear();
    this.onHeld(false);
    this.onRelease();
  }

  /** Keys are on or off; a wheel turns and comes back. */
  tick() {
    const wanted = clamp([...this.keys].reduce((sum, key) => sum + (STEER[key] ?? 0), 0), -1, 1);
    const rate = wanted === 0 ? 0.14 : 0.07;
    this.steer += clamp(wanted - this.steer, -rate, rate);
    const on = (set) => [...this.keys].some((key) => set.has(key));
    const action = this.action(+this.steer.toFixed(3), on(GAS), on(BRAKE));
    const text = action.join();
    if (text === this.sent) return;
    this.sent = text;
    this.onDrive(action);
  }
}
