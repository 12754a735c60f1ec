import type { Output } from '../../terminal/output.ts';
import { harmless } from '../../terminal/text.ts';
import type { Line } from './dash-view.ts';

/** The other screen, which leaves no trace; without a cursor, and long lines are cut off. */
const ENTER = '\u001b[?1049h\u001b[?25l\u001b[?7l';
const LEAVE = '\u001b[?7h\u001b[?25h\u001b[?1049l';
const HOME = '\u001b[H';
const CLEAR_LINE = '\u001b[K';
const CLEAR_REST = '\u001b[J';

/** What a terminal has that says nothing of itself, or 0. */
const DEFAULT_ROWS = 24;

/** All of the terminal, as long as it is taken. */
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
    // However the process ends, whoever sits there wants to see what they type.
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
