import type { ExampleOptions } from '../options.ts';
import { Consumer } from './consumer.ts';
import { ProduceLoad } from './produce-load.ts';

/** What consumers ask for, in turn: the least there is, a little, more than comes within `MAX_WAIT_MS`. */
const MIN_BYTES = [1, 2_000, 100_000] as const;
const MAX_WAIT_MS = 400;

/** Producers and consumers, all at once. */
export class Traffic {
  readonly load: ProduceLoad;
  readonly consumers: readonly Consumer[];
  readonly #options: ExampleOptions;
  readonly #leaderPort: number;
  readonly #stopProducing = new AbortController();
  #producing = Promise.resolve();
  #consuming: Promise<unknown> = Promise.resolve();
  /** Where each partition ends, as soon as that is known. */
  #ends: readonly number[] = [];

  constructor(leaderPort: number, options: ExampleOptions) {
    this.#leaderPort = leaderPort;
    this.#options = options;
    this.load = new ProduceLoad(leaderPort, options.partitions);
    this.consumers = Array.from({ length: options.consumers }, (_, index) =>
      this.#consumer(index % options.partitions, MIN_BYTES[index % MIN_BYTES.length] ?? 1),
    );
  }

  start(): void {
    this.#producing = this.load.run(this.#options.ratePerSecond, this.#stopProducing.signal);
    this.#consuming = Promise.all(
      this.consumers.map((consumer) => consumer.run(() => this.#ends[consumer.partition] ?? Infinity)),
    );
    // Whatever fails shows when it is waited for.
    this.#consuming.catch(() => undefined);
  }

  /** Sends no more, and waits for every answer. */
  async stopProducing(): Promise<void> {
    this.#stopProducing.abort();
    await this.#producing;
  }

  /** Lets the consumers read up to where the partitions end. */
  async finishConsuming(ends: readonly number[]): Promise<void> {
    this.#ends = ends;
    await this.#consuming;
  }

  /** Reads every partition once more, from its beginning. */
  readAll(ends: readonly number[]): Promise<string[][]> {
    return Promise.all(
      ends.map(async (end, partition) => {
        const reader = this.#consumer(partition, 1);
        try {
          await reader.run(() => end);
          return reader.values;
        } finally {
          reader.close();
        }
      }),
    );
  }

  /** Hangs up, whatever is under way. */
  close(): void {
    this.#stopProducing.abort();
    for (const client of [this.load, ...this.consumers]) client.close();
  }

  #consumer(partition: number, minBytes: number): Consumer {
    return new Consumer({ leaderPort: this.#leaderPort, partition, minBytes, maxWaitMs: MAX_WAIT_MS });
  }
}
