import type { WriteStream } from 'node:tty';
import cliProgress from 'cli-progress';
import { LiveFrame } from '../../shared/live-frame.ts';
import { formatCount } from '../../shared/number-format.ts';
import type { Status } from '../shipper/progress.ts';

const BAR_SIZE = 30;
const BAR = {
  barsize: BAR_SIZE,
  barCompleteString: '█'.repeat(BAR_SIZE),
  barIncompleteString: '░'.repeat(BAR_SIZE),
  barGlue: '',
};

/** The spool on a terminal, drawn over and over in the same place. */
export class LiveView {
  readonly #stream: WriteStream;
  readonly #frame: LiveFrame;
  #deepest = 1;

  constructor(stream: WriteStream) {
    this.#stream = stream;
    this.#frame = new LiveFrame(stream);
  }

  draw({ depth, bytes, taken, forwarded, retries, rejected }: Status): void {
    this.#deepest = Math.max(this.#deepest, depth);
    const count = formatCount;
    this.#frame.draw(
      [
        `  in the spool ${cliProgress.Format.BarFormat(depth / this.#deepest, BAR)} ${count(depth)} of ${count(this.#deepest)} lines, ${count(bytes / 1024)} KiB`,
        `  in ${count(taken)}, forwarded ${count(forwarded)}, retries ${count(retries)}, refused ${count(rejected)}`,
      ].map((line) => this.#cut(line)),
    );
  }

  /** Wipes the frame, for what is printed next. */
  clear(): void {
    this.#frame.clear();
  }

  /** Lines that wrap could not be drawn over. */
  #cut(line: string): string {
    const { columns } = this.#stream;
    return line.length < columns ? line : `${line.slice(0, columns - 2)}…`;
  }
}
