// The session as a WebAssembly module: bytes in, bytes out. Its exports are those of exports.rs.

const text = new TextDecoder();
const bytes = new TextEncoder();

export class Engine {
  constructor(exports) {
    this.exports = exports;
    const why = this.read(exports.begin());
    if (why.length) throw new Error(text.decode(why));
  }

  /** Puts bytes where the next call reads them. */
  write(data) {
    const at = this.exports.input(data.length);
    if (!at) throw new Error(`${(data.length / 1e6).toFixed(1)} MB are too much; choose a smaller file`);
    new Uint8Array(this.exports.memory.buffer, at, data.length).set(data);
  }

  /** A copy of what a call answered. */
  read(length) {
    return new Uint8Array(this.exports.memory.buffer, this.exports.output(), length).slice();
  }

  /** Executes a command, see protocol.rs and browser_lab.rs. */
  handle(command) {
    this.write(bytes.encode(JSON.stringify(command)));
    this.exports.handle();
  }

  /** Takes a weight file. */
  weights(name, file) {
    const title = bytes.encode(name.slice(0, 200));
    const both = new Uint8Array(title.length + file.length);
    both.set(title);
    both.set(file, title.length);
    this.write(both);
    this.exports.weights(title.length);
  }

  /** Advances by milliseconds, at maximum speed by `most` steps; whether there is a frame. */
  advance(elapsed, most) {
    return this.exports.advance(elapsed, most) === 1;
  }

  frame() {
    return this.read(this.exports.frame());
  }

  /** Words for the page, each a text. */
  messages() {
    return JSON.parse(text.decode(this.read(this.exports.messages())));
  }

  /** The film that was asked for; of no length if none was. */
  film() {
    return this.read(this.exports.film());
  }
}
