/** What a task queue on Redis must have to take part, and the adapter for queues of this process. */
import { performance } from 'node:perf_hooks';
import { MS_PER_S } from '../lib/part.ts';
import { batches, callBy, pace } from '../lib/work.ts';

export interface RedisAddress {
  readonly host: string;
  readonly port: number;
}

/** Tasks are numbered from 0, in the order in which they are enqueued. */
export interface OpenContestant {
  /** Enqueues one task a call, by `callers` at once; each waits until its task is in Redis, then enqueues the next. */
  enqueue(count: number, callers: number): Promise<unknown>;
  /** Enqueues `batch` tasks a call, one call after the other. */
  enqueueBulk(count: number, batch: number): Promise<unknown>;
  /** Starts a worker that processes `concurrency` tasks at once. Resolves when it is connected. */
  start(concurrency: number): Promise<unknown>;
  /** Resolves when the handlers of `count` tasks have run. */
  handled(count: number): Promise<void>;
  /** Enqueues at a fixed rate, without waiting for earlier tasks. @returns the time of each to its handler. */
  latenciesMs(count: number, perSecond: number): Promise<Float64Array>;
  /** The first failure so far: a task that is unknown or was handled twice. */
  problem(): string | undefined;
  /** Waits for running tasks and writes their results. */
  close(): Promise<unknown>;
}

export type OpenOn = (redis: RedisAddress) => Promise<OpenContestant>;

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

export function inProcess(open: (redis: RedisAddress) => Promise<TaskQueue> | TaskQueue): OpenOn {
  return async (redis) => contestantOf(await open(redis));
}

function contestantOf(queue: TaskQueue): OpenContestant {
  const enqueuedAtMs: number[] = [];
  /** -1 before the task was handled. */
  const latenciesMs: number[] = [];
  let handledCount = 0;
  let expected = Number.POSITIVE_INFINITY;
  let onExpected: () => void = () => undefined;
  let problem: string | undefined;

  const next = (): Payload => {
    const number = enqueuedAtMs.length;
    enqueuedAtMs.push(performance.now());
    latenciesMs.push(-1);
    return payloadOf(number);
  };

  const handle = (payload: Payload): void => {
    const number = payload.number - FIRST;
    const atMs = enqueuedAtMs[number] ?? Number.NaN;
    if (latenciesMs[number] !== -1) problem ??= `task ${number} is unknown or was handled twice`;
    latenciesMs[number] = performance.now() - atMs;
    if (++handledCount === expected) onExpected();
  };

  const handled = async (count: number): Promise<void> => {
    if (handledCount >= count) return;
    await new Promise<void>((resolve) => {
      expected = count;
      onExpected = resolve;
    });
  };

  return {
    enqueue: (count, callers) => callBy(callers, 0, count, () => queue.add(next())),
    enqueueBulk: async (count, batch) => {
      for (const numbers of batches(count, batch)) await queue.addMany(numbers.map(next));
    },
    start: (concurrency) => queue.work(concurrency, handle),
    handled,
    latenciesMs: async (count, perSecond) => {
      const adding: Promise<unknown>[] = [];
      await pace(count, perSecond / MS_PER_S, () => {
        adding.push(queue.add(next()));
      });
      await Promise.all(adding);
      await handled(count);
      return Float64Array.from(latenciesMs);
    },
    problem: () => problem,
    close: () => queue.close(),
  };
}
