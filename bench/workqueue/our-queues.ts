/** Ours: with `run`, with `get` and `done` by hand, and with leases. */
import { defaultControllerRateLimiter, RateLimitingQueue, WorkQueue } from 'escapement';
import type { JobQueue, QueueKind } from './job-queue.ts';
import type { Work } from './jobs.ts';

class OurQueue implements JobQueue {
  readonly #queue: WorkQueue<string>;

  constructor(queue: WorkQueue<string>) {
    this.#queue = queue;
  }

  addAll(keys: readonly string[]): void {
    const queue = this.#queue;
    for (const key of keys) queue.add(key);
  }

  add(key: string): void {
    this.#queue.add(key);
  }

  close(): void {
    this.#queue.shutDown();
  }
}

/** An async function that has nothing to wait for. */
function workOf(jobs: Work): (key: string) => Promise<void> {
  // eslint-disable-next-line @typescript-eslint/require-await -- what it costs that a worker is async
  return async (key) => {
    jobs.work(key);
  };
}

export const runSync: QueueKind = {
  name: 'ours: run',
  role: 'ours',
  open: (jobs, concurrency) => {
    const queue = new WorkQueue<string>();
    void queue.run(
      (key) => {
        jobs.work(key);
      },
      { concurrency },
    );
    return new OurQueue(queue);
  },
};

export const runAsync: QueueKind = {
  name: 'ours: run',
  role: 'ours',
  open: (jobs, concurrency) => {
    const queue = new WorkQueue<string>();
    void queue.run(workOf(jobs), { concurrency });
    return new OurQueue(queue);
  },
};

export const runWithRetries: QueueKind = {
  name: 'ours: RateLimitingQueue',
  role: 'ours',
  note: 'run of the queue that tries again what fails; nothing does.',
  open: (jobs, concurrency) => {
    const queue = new RateLimitingQueue<string>(defaultControllerRateLimiter());
    void queue.run(workOf(jobs), { concurrency });
    return new OurQueue(queue);
  },
};

export const byHandSync: QueueKind = {
  name: 'ours: get, done',
  role: 'ours',
  open: (jobs, concurrency) => {
    const queue = new WorkQueue<string>();
    const serve = async (): Promise<void> => {
      for (let taken = await queue.get(); !taken.shutdown; taken = await queue.get()) {
        jobs.work(taken.item);
        queue.done(taken.item);
      }
    };
    for (let worker = 0; worker < concurrency; worker++) void serve();
    return new OurQueue(queue);
  },
};

export const byHandAsync: QueueKind = {
  name: 'ours: get, done',
  role: 'ours',
  open: (jobs, concurrency) => {
    const queue = new WorkQueue<string>();
    const work = workOf(jobs);
    const serve = async (): Promise<void> => {
      for (let taken = await queue.get(); !taken.shutdown; taken = await queue.get()) {
        await work(taken.item);
        queue.done(taken.item);
      }
    };
    for (let worker = 0; worker < concurrency; worker++) void serve();
    return new OurQueue(queue);
  },
};

export const leasesSync: QueueKind = {
  name: 'ours: for await',
  role: 'ours',
  note: 'a lease each, which can be given back once only.',
  open: (jobs, concurrency) => {
    const queue = new WorkQueue<string>();
    const serve = async (): Promise<void> => {
      for await (const lease of queue) {
        jobs.work(lease.item);
        lease.done();
      }
    };
    for (let worker = 0; worker < concurrency; worker++) void serve();
    return new OurQueue(queue);
  },
};

export const leasesAsync: QueueKind = {
  name: 'ours: for await',
  role: 'ours',
  note: 'a lease each, which can be given back once only.',
  open: (jobs, concurrency) => {
    const queue = new WorkQueue<string>();
    const work = workOf(jobs);
    const serve = async (): Promise<void> => {
      for await (const lease of queue) {
        await work(lease.item);
        lease.done();
      }
    };
    for (let worker = 0; worker < concurrency; worker++) void serve();
    return new OurQueue(queue);
  },
};
