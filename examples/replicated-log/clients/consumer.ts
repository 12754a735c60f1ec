import { bodyOf, JsonClient } from '../http/json-client.ts';
import type { FetchAnswer } from '../wire.ts';

/** What a consumer asks for. */
export interface ConsumerOptions {
  readonly leaderPort: number;
  readonly partition: number;
  readonly minBytes: number;
  readonly maxWaitMs: number;
}

/** Reads one partition from its beginning, one long poll after the other. */
export class Consumer {
  readonly partition: number;
  readonly values: string[] = [];
  polls = 0;
  /** Answers that had fewer than `minBytes`: the long poll's time was over. */
  shortPolls = 0;
  /** Answers that broke a promise: records above the high watermark, or of another offset. */
  readonly complaints: string[] = [];
  readonly #client: JsonClient;
  readonly #minBytes: number;
  readonly #maxWaitMs: number;

  constructor({ leaderPort, partition, minBytes, maxWaitMs }: ConsumerOptions) {
    this.#client = new JsonClient(leaderPort);
    this.partition = partition;
    this.#minBytes = minBytes;
    this.#maxWaitMs = maxWaitMs;
  }

  /** Where it will read next. */
  get offset(): number {
    return this.values.length;
  }

  /** Reads until it is told an end and has reached it. @param end - asked before each poll. */
  async run(end: () => number): Promise<void> {
    while (this.offset < end()) await this.#poll();
  }

  /** Hangs up, also in the middle of a poll. */
  close(): void {
    this.#client.close();
  }

  async #poll(): Promise<void> {
    const { offset } = this;
    const path = `/fetch?partition=${this.partition}&offset=${offset}&minBytes=${this.#minBytes}&maxWaitMs=${this.#maxWaitMs}`;
    const answer = (bodyOf(await this.#client.get(path)) as FetchAnswer).partitions[0];
    if (answer === undefined) throw new Error('the answer to a fetch has no partition');
    const { firstOffset, values, highWatermark } = answer;
    this.polls++;
    if (values.reduce((bytes, value) => bytes + Buffer.byteLength(value), 0) < this.#minBytes)
      this.shortPolls++;
    if (firstOffset !== offset)
      this.complaints.push(`a consumer asked from offset ${offset} and got ${firstOffset}`);
    if (offset + values.length > highWatermark)
      this.complaints.push(`a consumer read up to ${offset + values.length}, above ${highWatermark}`);
    this.values.push(...values);
  }
}
