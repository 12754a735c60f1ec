import type { ProcessEnd } from './child.ts';
import { numberedLine } from './numbered-line.ts';
import { ShipperPipe } from './shipper-pipe.ts';

export interface ProducerOptions {
  readonly ratePerSecond: number;
  readonly shipperArgs: readonly string[];
}

/** One shipper, from its start to its end. */
export interface ShipperRun {
  readonly pid: number;
  readonly end: ProcessEnd;
  /** The number of the first line that it was given. */
  readonly first: number;
  /** The number of the last one that it has confirmed. */
  readonly confirmed: number;
}

export interface ProducerResult {
  /** Lines. They are numbered from 1. */
  readonly produced: number;
  /** In their order: the first one is run 1. */
  readonly runs: readonly ShipperRun[];
}

const TICK_MS = 10;

/**
 * A program that writes its log into a pipe, as web servers do, and does not want to lose a line of it. It keeps what the
 * shipper has not confirmed; when that is killed, it starts another one, and begins where the confirmations end.
 *
 *       confirmed          given          produced
 *      ────┴──────────────────┴───────────────┴────►  lines
 *          └─ the next shipper begins here
 */
export class Producer {
  readonly #options: ProducerOptions;
  readonly #onShipper: (pid: number) => void;
  readonly #runs: ShipperRun[] = [];
  #shipper: ShipperPipe | undefined;
  /** Of each, how many. The lines that are kept are made again from their numbers: a real program would have them. */
  #produced = 0;
  #given = 0;
  #confirmed = 0;
  #isFinishing = false;
  #isAborted = false;

  constructor(options: ProducerOptions, onShipper: (pid: number) => void) {
    this.#options = options;
    this.#onShipper = onShipper;
  }

  /** Resolves when a shipper has ended by itself: because there was no more, or because it has failed. */
  async run(): Promise<ProducerResult> {
    const startMs = performance.now();
    const produce = (): void => {
      const elapsedS = (performance.now() - startMs) / 1_000;
      if (!this.#isFinishing) this.#produced = Math.floor(elapsedS * this.#options.ratePerSecond);
      this.#give();
    };
    const interval = setInterval(produce, TICK_MS);
    while ((await this.#wasKilled()) && !this.#isAborted);
    clearInterval(interval);
    return { produced: this.#produced, runs: this.#runs };
  }

  /** Produces no more; what there is goes to the shipper. */
  finish(): void {
    this.#isFinishing = true;
  }

  /** Lets the shipper stop where it is. */
  abort(): void {
    this.#isFinishing = true;
    this.#isAborted = true;
    this.#shipper?.stop();
  }

  /** Starts a shipper, and waits for its end. */
  async #wasKilled(): Promise<boolean> {
    const before = this.#confirmed;
    this.#given = before;
    const shipper = new ShipperPipe(this.#options.shipperArgs, {
      confirmed: (lines) => {
        this.#confirmed = before + lines;
      },
      drained: () => {
        this.#give();
      },
    });
    this.#shipper = shipper;
    this.#onShipper(shipper.pid);
    const end = await shipper.ended;
    this.#runs.push({ pid: shipper.pid, end, first: before + 1, confirmed: this.#confirmed });
    return end.signal === 'SIGKILL';
  }

  #give(): void {
    if (this.#shipper === undefined || this.#shipper.isFull) return;
    const run = this.#runs.length + 1;
    let text = '';
    while (this.#given < this.#produced) text += `${numberedLine({ number: ++this.#given, run })}\n`;
    if (text !== '') this.#shipper.write(text);
    if (this.#isFinishing) this.#shipper.end();
  }
}
