// The socket: commands out, words and frames in. What the bytes of a frame mean is written down in frame.rs.

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
  const lanes = many(count, () => {
    const flags = u8();
    const lane = {
      over: !!(flags & 1), terminated: !!(flags & 2), truncated: !!(flags & 4), held: !!(flags & 8), broken: !!(flags & 16),
      steps: u32(), score: f64(), action: many(u8(), f32),
    };
    const [width, height] = [u16(), u16()];
    lane.seen = { width, height, rgb: new Uint8Array(buffer, at, width * height * 3) };
    at += width * height * 3;
    const [columns, rows, patch, stride, k] = many(5, u16);
    lane.gaze = { columns, rows, patch, stride, lookedAt: many(k, u16) };
    const patches = columns * rows;
    lane.gaze.importance = new Float32Array(buffer.slice(at, at + 4 * patches));
    at += 4 * patches;
    const length = u32();
    lane.view = length ? new Blob([new Uint8Array(buffer, at, length)], { type: "image/png" }) : null;
    at += length;
    return lane;
  });
  return { number, lanes };
}

/**
 * Connects. `on.said(message)` gets every word, `on.frame(frame)` the newest frame when the screen is ready for one (so
 * a hidden tab takes none, and the lab rests), `on.film(blob)` a film, `on.gone(why)` the end.
 */
export function connect(on) {
  const token = new URLSearchParams(location.search).get("token");
  const scheme = location.protocol === "https:" ? "wss" : "ws";
  const socket = new WebSocket(`${scheme}://${location.host}/ws${token ? `?token=${encodeURIComponent(token)}` : ""}`);
  socket.binaryType = "arraybuffer";
  let newest = null;
  let drawn = 0;
  let waiting = false;
  let last = "";

  const send = (command) => {
    if (socket.readyState === WebSocket.OPEN) socket.send(JSON.stringify(command));
  };
  const draw = () => {
    waiting = false;
    const frame = newest;
    newest = null;
    if (!frame) return;
    drawn = frame.number;
    on.frame(frame);
    for (const lane of frame.lanes) lane.bitmap?.close();
    send({ do: "shown", frame: frame.number });
  };
  const take = async (frame) => {
    for (const lane of frame.lanes) lane.bitmap = lane.view ? await createImageBitmap(lane.view) : null;
    // Pictures are decoded side by side, and one may overtake another.
    if (frame.number <= Math.max(drawn, newest?.number ?? 0)) {
      frame.lanes.forEach((lane) => lane.bitmap?.close());
      return;
    }
    newest?.lanes.forEach((lane) => lane.bitmap?.close());
    newest = frame;
    if (!waiting) {
      waiting = true;
      requestAnimationFrame(draw);
    }
  };
  socket.onmessage = ({ data }) => {
    if (typeof data === "string") {
      const message = JSON.parse(data);
      if (message.final) last = message.error;
      on.said(message);
      return;
    }
    const kind = new Uint8Array(data, 0, 1)[0];
    if (kind === FRAME) take(readFrame(data));
    if (kind === FILM) on.film(new Blob([new Uint8Array(data, 1)], { type: "video/mp4" }));
  };
  socket.onclose = ({ reason }) => on.gone(last || reason);
  return send;
}
