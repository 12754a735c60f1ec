import { Presets, SingleBar } from 'cli-progress';
import type { Output } from './output.ts';
import { harmless } from './text.ts';

/** Work that is done sooner has no bar, in milliseconds. */
const SHOWN_AFTER_MS = 300;

/** Progress of long work, on stderr, and only on a terminal. */
export class ProgressBar {
  readonly #err: Output;
  readonly #label: string;
  readonly #now: () => number;
  readonly #sinceMs: number;
  #bar: SingleBar | undefined;

  constructor(err: Output, label: string, now: () => number = () => performance.now()) {
    this.#err = err;
    this.#label = label;
    this.#now = now;
    this.#sinceMs = now();
  }

  update(done: number, total: number): void {
    if (!this.#err.isTerminal) return;
    if (this.#bar === undefined && this.#now() - this.#sinceMs < SHOWN_AFTER_MS) return;
    this.#bar ??= this.#start(total);
    this.#bar.setTotal(total);
    this.#bar.update(done);
  }

  stop(): void {
    this.#bar?.stop();
    this.#bar = undefined;
  }

  #start(total: number): SingleBar {
    const bar = new SingleBar(
      {
        stream: this.#err.stream as unknown as NodeJS.WritableStream,
        format: ' {bar} {percentage} %  {label}',
        barsize: 24,
        clearOnComplete: true,
        gracefulExit: false, // the command handles Ctrl-C
      },
      Presets.shades_classic,
    );
    bar.start(total, 0, { label: harmless(this.#label) });
    return bar;
  }
}
