// What the lab says: words and frames. What the bytes of a frame mean is written down in frame.rs.

const FRAME = 1;
const FILM = 2;

/** Understands the bytes of a frame. */
export function readFrame(buffer) {
  const data = new DataView(buffer);
  let at = 1;
  const u8 = () => data.getUint8(at++);
  const u16 = () => { at += 2; return data.getUint16(at - 2, true); };
  const u32 = () => { at += 4; return data.getUint32(at - 4, true); };
  const f32 = () => { at += 4; return data.getFloat32(at - 4, true); };
  const f64 = () => { at += 8; return data.getFloat64(at - 8, true); };
  const many = (n, one) => Array.from({ length: n }, one);
  const count = u8();
  const number = u32();
  const runners = many(count, () => {
    const flags = u8();
    const runner = {
      over: !!(flags & 1), terminated: !!(flags & 2), truncated: !!(flags & 4), held: !!(flags & 8), broken: !!(flags & 16),
      steps: u32(), score: f64(), action: many(u8(), f32),
      // What the action would be without interventions; empty while there are none.
      undisturbed: many(u8(), f32),
    };
    runner.seen = { width: u16(), height: u16() };
    const pixels = runner.seen.width * runner.seen.height;
    runner.seen.rgb = new Uint8Array(buffer, at, pixels * 3);
    at += pixels * 3;
    const [columns, rows, patch, stride, k, width, height] = many(7, u16);
    runner.attention = { columns, rows, patch, stride, width, height, selected: many(k, u16) };
    const patches = columns * rows;
    runner.attention.importance = new Float32Array(buffer.slice(at, at + 4 * patches));
    at += 4 * patches;
    // How far the action changes without each patch, as a part of the strongest effect.
    runner.attention.effects = many(u16(), () => ({ patch: u16(), effect: f32() }));
    // Which sensor of the unchanged world each shown one is: patches of this side, or numbers (0).
    runner.order = { patch: u16(), sensors: many(u16(), u32) };
    const [sent, all, queries] = many(3, u16);
    runner.numbers = { all, queries, values: many(sent, f32), weights: many(queries * sent, f32) };
    const length = u32();
    runner.view = length ? { width: data.getUint16(at, true), height: data.getUint16(at + 2, true), data, at: at + 4, end: at + length } : null;
    at += length;
    return runner;
  });
  return { number, runners };
}

/** Paints a view's runs of equal pixels; a pixel of `pixels` is red, green, blue and opacity in a little-endian u32. */
export function paint({ data, at, end }, pixels) {
  let to = 0;
  for (let i = at; i < end; i += 4) {
    const run = data.getUint32(i, true);
    const stop = to + (run >>> 24);
    const color = run | 0xff000000;
    if (stop - to > 24) pixels.fill(color, to, stop);
    else for (let pixel = to; pixel < stop; pixel++) pixels[pixel] = color;
    to = stop;
  }
}

/**
 * Takes what the lab says: `on.message(message)` gets every word, `on.frame(frame)` the newest frame when the screen is ready for
 * one (so a hidden tab takes none, and the lab rests), `on.film(blob)` a film.
 */
export function receiver(on, send) {
  let newest = null;
  let waiting = false;
  const draw = () => {
    const frame = newest;
    newest = null;
    if (!frame) return;
    on.frame(frame);
    send({ type: "shown", frame: frame.number });
  };
  const take = (frame) => {
    newest = frame;
    if (!waiting) {
      waiting = true;
      requestAnimationFrame(() => {
        waiting = false;
        draw();
      });
    }
  };
  return (data) => {
    if (typeof data === "string") {
      // A frame that came before a word is drawn before it: what is said to be paused shows its last step.
      draw();
      on.message(JSON.parse(data));
      return;
    }
    const kind = new Uint8Array(data, 0, 1)[0];
    if (kind === FRAME) take(readFrame(data));
    if (kind === FILM) on.film(new Blob([new Uint8Array(data, 1)], { type: "video/mp4" }));
  };
}
