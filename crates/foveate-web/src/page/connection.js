// The socket: commands out, words and frames in.

import { receiver } from "/frame.js";

/** Connects. `on` is that of a receiver, and `on.gone(why)` gets the end. */
export function connect(on) {
  const token = new URLSearchParams(location.search).get("token");
  const scheme = location.protocol === "https:" ? "wss" : "ws";
  const socket = new WebSocket(`${scheme}://${location.host}/ws${token ? `?token=${encodeURIComponent(token)}` : ""}`);
  socket.binaryType = "arraybuffer";
  let last = "";
  let answered = false;
  const send = (command) => {
    if (socket.readyState === WebSocket.OPEN) socket.send(JSON.stringify(command));
  };
  const receive = receiver({
    ...on,
    message: (message) => {
      if (message.final) last = message.error;
      on.message(message);
    },
  }, send);
  socket.onmessage = ({ data }) => {
    answered = true;
    receive(data);
  };
  const refused = "The lab let this page in only with its token: open the whole address that was shown when the lab started.";
  socket.onclose = ({ reason }) => on.gone(last || reason || (answered ? "" : refused));
  return send;
}
