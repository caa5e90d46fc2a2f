// The session inside the page: a worker in the place of the socket, for the page in one file.

import { receiver } from "/frame.js";

/** Starts the worker. `on` is that of a receiver, and `on.gone(why)` gets the end. A command may be a weight file: its name and bytes. */
export function connect(on) {
  const worker = new Worker(URL.createObjectURL(new Blob([WORKER], { type: "text/javascript" })));
  const send = (command) => worker.postMessage(command);
  const receive = receiver(on, send);
  worker.onmessage = ({ data }) => receive(data);
  worker.onerror = ({ message }) => on.gone(`This browser cannot run the lab: ${message}`);
  const text = document.getElementById("engine").textContent;
  send({ type: "begin", module: Uint8Array.from(atob(text), (digit) => digit.charCodeAt(0)) });
  return send;
}
