import type { WriteStream } from 'node:tty';
import cliProgress from 'cli-progress';
import type { Controller } from '../controller/controller.ts';
import { LiveFrame } from '../../shared/live-frame.ts';
import { formatCount } from '../../shared/number-format.ts';
import type { Progress } from './progress.ts';

const BAR_SIZE = 40;
const BAR = {
  barsize: BAR_SIZE,
  barCompleteString: '█'.repeat(BAR_SIZE),
  barIncompleteString: '░'.repeat(BAR_SIZE),
  barGlue: '',
};
/** Files in the list of what was done last, if there is room. */
const LAST = 8;
/** The other lines, and the one the cursor rests in. */
const OTHER_LINES = 5;

/** The queue on a terminal, drawn over and over in the same place. */
export class LiveView {
  readonly #stream: WriteStream;
  readonly #frame: LiveFrame;
  readonly #lines: string[] = [];
  #fullest = 1;

  constructor(stream: WriteStream) {
    this.#stream = stream;
    this.#frame = new LiveFrame(stream);
  }

  /** Something that was done. */
  add(line: string): void {
    this.#lines.push(line);
    if (this.#lines.length > LAST) this.#lines.shift();
  }

  draw({ events, taken, written, retries, dropped }: Progress, load: Controller['load']): void {
    const { depth, inWork, waiting } = load;
    this.#fullest = Math.max(this.#fullest, depth);
    const count = formatCount;
    this.#frame.draw(
      [
        `  depth ${cliProgress.Format.BarFormat(depth / this.#fullest, BAR)} ${count(depth)} of ${count(this.#fullest)}`,
        `  in work ${count(inWork)}, waiting ${count(waiting)}, retries ${count(retries)}, given up ${count(dropped)}`,
        `  events ${count(events)}, taken from the queue ${count(taken)}, written ${count(written)}`,
        '',
        ...this.#lines.slice(0, this.#stream.rows - OTHER_LINES).map((line) => `  ${line}`),
      ].map((line) => this.#cut(line)),
    );
  }

  /** Wipes the frame, for what is printed next. */
  clear(): void {
    this.#frame.clear();
  }

  /** Lines that wrap could not be drawn over. Its colour, at its beginning, makes a line shorter than it may be. */
  #cut(line: string): string {
    const { columns } = this.#stream;
    return line.length < columns ? line : `${line.slice(0, columns - 2)}…`;
  }
}
