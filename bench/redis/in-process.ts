/** A task queue of this process as a contestant: it only has to add and to handle. */
import { performance } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import type { OpenContestant, OpenOn, RedisAddress } from './contestant.ts';
import { numberOf, payloadOf, type Payload } from './payload.ts';

export interface TaskQueue {
  add(payload: Payload): Promise<unknown>;
  addMany(payloads: readonly Payload[]): Promise<unknown>;
  work(concurrency: number, handle: (payload: Payload) => void): Promise<unknown>;
  close(): Promise<unknown>;
}

const MS_PER_SECOND = 1_000;

export function inProcess(open: (redis: RedisAddress) => Promise<TaskQueue> | TaskQueue): OpenOn {
  return async (redis) => new InProcess(await open(redis));
}

class InProcess implements OpenContestant {
  readonly #queue: TaskQueue;
  readonly #enqueuedAtMs: number[] = [];
  /** -1 before it was. */
  readonly #latenciesMs: number[] = [];
  #handled = 0;
  #expected = Number.POSITIVE_INFINITY;
  #onExpected: () => void = () => undefined;
  #problem: string | undefined;

  constructor(queue: TaskQueue) {
    this.#queue = queue;
  }

  async enqueue(count: number, callers: number): Promise<void> {
    const last = this.#enqueuedAtMs.length + count;
    const caller = async (): Promise<void> => {
      while (this.#enqueuedAtMs.length < last) await this.#queue.add(this.#next());
    };
    await Promise.all(Array.from({ length: callers }, caller));
  }

  async enqueueBulk(count: number, batch: number): Promise<void> {
    for (let left = count; left > 0; left -= batch) {
      await this.#queue.addMany(Array.from({ length: Math.min(batch, left) }, () => this.#next()));
    }
  }

  async start(concurrency: number): Promise<void> {
    await this.#queue.work(concurrency, (payload) => {
      this.#handle(numberOf(payload));
    });
  }

  async handled(count: number): Promise<void> {
    if (this.#handled >= count) return;
    await new Promise<void>((resolve) => {
      this.#expected = count;
      this.#onExpected = resolve;
    });
  }

  /** The host's timers are late at times: then what is due is enqueued at once. */
  async latenciesMs(count: number, perSecond: number): Promise<Float64Array> {
    const startMs = performance.now();
    const adding: Promise<unknown>[] = [];
    while (adding.length < count) {
      await sleep(1);
      const due = Math.floor(((performance.now() - startMs) * perSecond) / MS_PER_SECOND);
      while (adding.length < Math.min(due, count)) adding.push(this.#queue.add(this.#next()));
    }
    await Promise.all(adding);
    await this.handled(count);
    return Float64Array.from(this.#latenciesMs);
  }

  problem(): string | undefined {
    return this.#problem;
  }

  async close(): Promise<void> {
    await this.#queue.close();
  }

  #next(): Payload {
    const number = this.#enqueuedAtMs.length;
    this.#enqueuedAtMs.push(performance.now());
    this.#latenciesMs.push(-1);
    return payloadOf(number);
  }

  #handle(number: number): void {
    const atMs = this.#enqueuedAtMs[number] ?? Number.NaN;
    if (this.#latenciesMs[number] !== -1) this.#problem ??= `task ${number} is unknown, or came twice`;
    this.#latenciesMs[number] = performance.now() - atMs;
    if (++this.#handled === this.#expected) this.#onExpected();
  }
}
