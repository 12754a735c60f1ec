/** How far the run is, on stderr, and only where somebody watches: a pipe or a log gets the tables alone. */
import { Presets, SingleBar } from 'cli-progress';

/** Next to never: the bar is drawn by `step` alone, so its own timer wakes nobody who is being measured. */
const FRAMES_PER_SECOND = 1e-6;

export class Progress {
  readonly #total: number;
  readonly #bar: SingleBar | undefined;
  #isShown = false;
  #done = 0;

  constructor(total: number, stream: NodeJS.WriteStream) {
    this.#total = total;
    if (!stream.isTTY) return;
    this.#bar = new SingleBar(
      {
        stream,
        format: ' {bar} {value}/{total}  {label}',
        barsize: 24,
        clearOnComplete: true,
        hideCursor: true,
        fps: FRAMES_PER_SECOND,
      },
      Presets.shades_classic,
    );
  }

  /** One more contestant starts its round. */
  step(label: string): void {
    if (this.#bar === undefined) return;
    if (!this.#isShown) this.#bar.start(this.#total, this.#done, { label });
    this.#isShown = true;
    this.#bar.update(this.#done, { label });
    this.#bar.render();
    this.#done++;
  }

  /** Takes the bar away, so that a table can be printed; the next step brings it back. */
  clear(): void {
    if (this.#isShown) this.#bar?.stop();
    this.#isShown = false;
  }
}
