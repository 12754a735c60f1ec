import type { WriteStream } from 'node:tty';

const HIDE_CURSOR = '\u001b[?25l';
const SHOW_CURSOR = '\u001b[?25h';
const CLEAR_TO_LINE_END = '\u001b[K';
const CLEAR_BELOW = '\u001b[J';

/** Lines that are drawn over and over in the same place of a terminal. None may be wider than it. */
export class LiveFrame {
  readonly #stream: WriteStream;
  #drawnLines = 0;

  constructor(stream: WriteStream) {
    this.#stream = stream;
  }

  /** Replaces the frame. One write, so that it does not flicker. */
  draw(lines: readonly string[]): void {
    const start = this.#drawnLines === 0 ? HIDE_CURSOR : '';
    this.#replace(start + lines.map((line) => `${line}${CLEAR_TO_LINE_END}\n`).join(''));
    this.#drawnLines = lines.length;
  }

  /** Wipes the frame, for what is printed next. */
  clear(): void {
    this.#replace(SHOW_CURSOR);
    this.#drawnLines = 0;
  }

  #replace(text: string): void {
    const toTop = this.#drawnLines > 0 ? `\u001b[${this.#drawnLines}F` : '';
    this.#stream.write(toTop + text + CLEAR_BELOW);
  }
}
