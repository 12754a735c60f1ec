/** async.queue, a list of jobs, and p-queue, a list of functions by priority. */
import { queue as asyncQueue, type QueueObject } from 'async';
import PQueue from 'p-queue';
import type { JobQueue, QueueKind } from './job-queue.ts';
import type { Work } from './jobs.ts';

const nothing = (): void => undefined;

class AsyncQueue implements JobQueue {
  readonly #queue: QueueObject<string>;

  constructor(queue: QueueObject<string>) {
    this.#queue = queue;
  }

  /** Without a callback of its own, each job would be given a promise. */
  addAll(keys: readonly string[]): void {
    const queue = this.#queue;
    for (const key of keys) queue.push(key, nothing);
  }

  add(key: string): void {
    this.#queue.push(key, nothing);
  }

  close(): void {
    this.#queue.kill();
  }
}

export const asyncQueueSync: QueueKind = {
  name: 'async.queue',
  role: 'rival',
  open: (jobs, concurrency) => {
    const worker = (key: string, done: (error?: Error) => void): void => {
      jobs.work(key);
      done();
    };
    return new AsyncQueue(asyncQueue(worker, concurrency));
  },
};

export const asyncQueueAsync: QueueKind = {
  name: 'async.queue',
  role: 'rival',
  open: (jobs, concurrency) => {
    // eslint-disable-next-line @typescript-eslint/require-await -- what it costs that a worker is async
    const worker = async (key: string): Promise<void> => {
      jobs.work(key);
    };
    // eslint-disable-next-line @typescript-eslint/no-misused-promises -- it takes async functions, unknown to its types
    return new AsyncQueue(asyncQueue(worker, concurrency));
  },
};

class PromiseQueue implements JobQueue {
  readonly #queue: PQueue;
  readonly #jobs: Work;

  constructor(jobs: Work, concurrency: number) {
    this.#queue = new PQueue({ concurrency });
    this.#jobs = jobs;
  }

  addAll(keys: readonly string[]): void {
    const queue = this.#queue;
    const jobs = this.#jobs;
    for (const key of keys) {
      void queue.add(() => {
        jobs.work(key);
      });
    }
  }

  add(key: string): void {
    void this.#queue.add(() => {
      this.#jobs.work(key);
    });
  }

  close(): void {
    this.#queue.clear();
  }
}

/** It awaits what the function returns, whatever that is. */
export const pQueue: QueueKind = {
  name: 'p-queue',
  role: 'rival',
  note: 'a job is a function, and add returns a promise of what that returns.',
  open: (jobs, concurrency) => new PromiseQueue(jobs, concurrency),
};
