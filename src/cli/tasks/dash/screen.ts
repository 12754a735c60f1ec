import type { Output } from '../../terminal/output.ts';
import { harmless } from '../../terminal/text.ts';
import type { Line } from './dash-view.ts';

/** Switches to the alternate screen, hides the cursor, and cuts long lines off. */
const ENTER = '\u001b[?1049h\u001b[?25l\u001b[?7l';
const LEAVE = '\u001b[?7h\u001b[?25h\u001b[?1049l';
const HOME = '\u001b[H';
const CLEAR_LINE = '\u001b[K';
const CLEAR_REST = '\u001b[J';

/** For a terminal that does not report its size, or 0. */
const DEFAULT_ROWS = 24;

/** The whole terminal, between `enter` and `leave`. */
export class Screen {
  readonly #out: Output;
  #isTaken = false;

  constructor(out: Output) {
    this.#out = out;
  }

  get height(): number {
    const { rows = 0 } = this.#out.stream;
    return rows > 0 ? rows : DEFAULT_ROWS;
  }

  enter(): Promise<void> {
    this.#isTaken = true;
    // The terminal must be usable again, however the process ends.
    process.once('exit', this.#leaveAtOnce);
    return this.#write(ENTER);
  }

  draw(lines: readonly Line[]): Promise<void> {
    if (!this.#isTaken) return Promise.resolve();
    const painted = lines.map(({ text, style }) =>
      style === undefined ? harmless(text) : this.#out.paint(style, harmless(text)),
    );
    return this.#write(`${HOME}${painted.map((line) => line + CLEAR_LINE).join('\r\n')}${CLEAR_REST}`);
  }

  /** Idempotent. */
  async leave(): Promise<void> {
    if (!this.#isTaken) return;
    this.#isTaken = false;
    process.off('exit', this.#leaveAtOnce);
    await this.#write(LEAVE);
  }

  readonly #leaveAtOnce = (): void => {
    if (this.#isTaken) this.#out.stream.write(LEAVE, () => undefined);
  };

  async #write(text: string): Promise<void> {
    await this.#out.add(Buffer.from(text));
    await this.#out.flush();
  }
}
