/** What a task queue on Redis must have to take part, and the adapter for queues of this process. */
import { performance } from 'node:perf_hooks';
import { pace } from '../lib/latencies.ts';
import type { Contestant } from '../lib/part.ts';

export interface RedisAddress {
  readonly host: string;
  readonly port: number;
}

/** Tasks are numbered from 0, in the order in which they are enqueued. */
export interface OpenContestant {
  /** Enqueues one task a call, by `callers` at once; each waits until its task is in Redis, then enqueues the next. */
  enqueue(count: number, callers: number): Promise<void>;
  /** Enqueues `batch` tasks a call, one call after the other. */
  enqueueBulk(count: number, batch: number): Promise<void>;
  /** Starts a worker that processes `concurrency` tasks at once. Resolves when it is connected. */
  start(concurrency: number): Promise<void>;
  /** Resolves when the handlers of `count` tasks have run. */
  handled(count: number): Promise<void>;
  /** Enqueues at a fixed rate, without waiting for earlier tasks. @returns the time of each to its handler. */
  latenciesMs(count: number, perSecond: number): Promise<Float64Array>;
  /** The first failure so far: a task that is unknown or was handled twice. */
  problem(): string | undefined;
  /** Waits for running tasks and writes their results. */
  close(): Promise<void>;
}

export type OpenOn = (redis: RedisAddress) => Promise<OpenContestant>;

export interface RedisContestant extends Contestant<OpenOn> {
  /** Whether it lacks a call for many tasks. */
  readonly hasNoBulk?: boolean;
}

/** What a task carries: 64 bytes of JSON. */
export interface Payload {
  readonly number: number;
  readonly padding: string;
}

/** Makes all numbers equally long. */
const FIRST = 1_000_000;
const padding = 'x'.repeat(33);

export function payloadOf(number: number): Payload {
  return { number: FIRST + number, padding };
}

type Handle = (payload: Payload) => void;

/** A task queue of this process. */
export interface TaskQueue {
  add(payload: Payload): Promise<unknown>;
  addMany(payloads: readonly Payload[]): Promise<unknown>;
  /** @param onDone - called when the queue has recorded that a task is done. */
  work(concurrency: number, handle?: Handle, onDone?: Handle): Promise<unknown>;
  close(): Promise<unknown>;
}

export interface CountedQueue extends TaskQueue {
  /** Tasks that are not done. */
  left(): Promise<number>;
}

const MS_PER_SECOND = 1_000;

export function inProcess(open: (redis: RedisAddress) => Promise<TaskQueue> | TaskQueue): OpenOn {
  return async (redis) => new InProcess(await open(redis));
}

class InProcess implements OpenContestant {
  readonly #queue: TaskQueue;
  readonly #enqueuedAtMs: number[] = [];
  /** -1 before the task was handled. */
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
      this.#handle(payload.number - FIRST);
    });
  }

  async handled(count: number): Promise<void> {
    if (this.#handled >= count) return;
    await new Promise<void>((resolve) => {
      this.#expected = count;
      this.#onExpected = resolve;
    });
  }

  async latenciesMs(count: number, perSecond: number): Promise<Float64Array> {
    const adding: Promise<unknown>[] = [];
    await pace(count, perSecond / MS_PER_SECOND, () => {
      adding.push(this.#queue.add(this.#next()));
    });
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
    if (this.#latenciesMs[number] !== -1) this.#problem ??= `task ${number} is unknown or was handled twice`;
    this.#latenciesMs[number] = performance.now() - atMs;
    if (++this.#handled === this.#expected) this.#onExpected();
  }
}
