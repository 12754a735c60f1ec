import { styleText } from 'node:util';
import { harmlessLines } from './text.ts';

/** The part of a stream that is used here. */
interface OutputStream {
  readonly isTTY?: boolean;
  readonly columns?: number;
  readonly rows?: number;
  hasColors?(): boolean;
  write(chunk: string | Uint8Array, done: (error?: Error | null) => void): boolean;
  on(event: 'error', listener: (error: Error) => void): unknown;
  on(event: 'resize', listener: () => void): unknown;
  off?(event: 'resize', listener: () => void): unknown;
}

/** Number of bytes that are collected for one write. */
const BUFFER_BYTES = 64 * 1024;

type Colour = 'red' | 'green' | 'yellow' | 'bold' | 'inverse';

/** Control sequences that `paint` adds: colours only. */
// eslint-disable-next-line no-control-regex -- the control character is intended
const COLOUR = /(\u001b\[\d{1,2}m)/;

/** One of the two streams of a command. If its reader or its terminal is closed, nothing more is written, and nothing fails. */
export class Output {
  readonly stream: OutputStream;
  #chunks: Uint8Array[] = [];
  #bytes = 0;
  #isGone = false;

  constructor(stream: OutputStream) {
    this.stream = stream;
    stream.on('error', () => undefined); // each write has the error
  }

  /** Whether it is a terminal, which a user may be watching. */
  get isTerminal(): boolean {
    return this.stream.isTTY === true;
  }

  /** Columns of a line; Infinity for a file and for a terminal that does not report its size. */
  get width(): number {
    const { columns = 0 } = this.stream;
    return this.isTerminal && columns > 0 ? columns : Infinity;
  }

  /** Whether the reader has closed it, as `| head` does. */
  get isGone(): boolean {
    return this.#isGone;
  }

  async print(...lines: string[]): Promise<void> {
    await this.add(lines.map((line) => `${line}\n`).join(''));
    await this.flush();
  }

  /**
   * Adds data to the next write. Resolves when more can be added.
   *
   * @param data - text is made harmless, in case a caller has not done so; bytes are written unchanged.
   */
  async add(data: string | Uint8Array): Promise<void> {
    const chunk = typeof data === 'string' ? Buffer.from(this.#harmless(data)) : data;
    this.#chunks.push(chunk);
    this.#bytes += chunk.length;
    if (this.#bytes >= BUFFER_BYTES) await this.flush();
  }

  async flush(): Promise<void> {
    const bytes = Buffer.concat(this.#chunks);
    this.#chunks = [];
    this.#bytes = 0;
    if (bytes.length > 0 && !this.#isGone) await this.#write(bytes);
  }

  /** Returns the text in a colour, if the terminal has colours and they are not disabled. */
  paint(colour: Colour, text: string): string {
    // By default it checks standard output, whatever the stream is.
    return this.#hasColours ? styleText(colour, text, { validateStream: false }) : text;
  }

  get #hasColours(): boolean {
    return this.isTerminal && this.stream.hasColors?.() === true;
  }

  #harmless(text: string): string {
    if (!this.#hasColours) return harmlessLines(text);
    const parts = text.split(COLOUR);
    return parts.map((part, at) => (at % 2 === 1 ? part : harmlessLines(part))).join('');
  }

  #write(bytes: Uint8Array): Promise<void> {
    return new Promise((resolve, reject) => {
      this.stream.write(bytes, (error) => {
        if (error === undefined || error === null) resolve();
        else if (this.#isClosed(error)) {
          this.#isGone = true;
          resolve();
        } else reject(error);
      });
    });
  }

  /** A terminal whose window was closed has an input/output error; so has a file on a damaged disk. */
  #isClosed({ code }: NodeJS.ErrnoException): boolean {
    return code === 'EPIPE' || (this.isTerminal && code === 'EIO');
  }
}
