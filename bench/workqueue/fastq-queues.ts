/** fastq: a list of jobs, and callbacks. */
import fastq from 'fastq';
import type { AbleKind, JobQueue, QueueKind } from './job-queue.ts';
import type { Work } from './jobs.ts';

const resolved = Promise.resolve();

/** The cheapest way out of the stack: `queueMicrotask` and `process.nextTick` cost more. */
function afterwards(done: fastq.done): void {
  void resolved.then(done as () => void);
}

function close(queue: fastq.queue<string>): void {
  queue.kill();
}

/** Nothing but fastq. */
class PlainQueue implements JobQueue {
  readonly #queue: fastq.queue<string>;

  constructor(queue: fastq.queue<string>) {
    this.#queue = queue;
  }

  addAll(keys: readonly string[]): void {
    const queue = this.#queue;
    for (const key of keys) queue.push(key);
  }

  add(key: string): void {
    this.#queue.push(key);
  }

  close(): void {
    close(this.#queue);
  }
}

/** What one writes to get each key once: a Set of those that are queued. */
class QueueWithSet implements JobQueue {
  readonly #queue: fastq.queue<string>;
  readonly #queued: Set<string>;

  constructor(queue: fastq.queue<string>, queued: Set<string>) {
    this.#queue = queue;
    this.#queued = queued;
  }

  addAll(keys: readonly string[]): void {
    const queue = this.#queue;
    const queued = this.#queued;
    for (const key of keys) {
      if (!queued.has(key)) {
        queued.add(key);
        queue.push(key);
      }
    }
  }

  add(key: string): void {
    if (this.#queued.has(key)) return;
    this.#queued.add(key);
    this.#queue.push(key);
  }

  close(): void {
    close(this.#queue);
  }
}

const WITH_SET_NOTE = 'a key leaves the Set when its job begins; two workers may then have it at once.';

export const fastqAtOnce: QueueKind = {
  name: 'fastq, called back at once',
  role: 'rival',
  open: {
    cannot:
      'it does each job inside of push, and nothing is ever queued; paused until 10 000 are, its callbacks overflow the stack',
  },
};

export const fastqSync: AbleKind = {
  name: 'fastq',
  role: 'baseline',
  note: 'each callback comes from a promise that is resolved already, or 10 000 would overflow the stack.',
  open: (jobs, concurrency) =>
    new PlainQueue(
      fastq((key: string, done: fastq.done) => {
        jobs.work(key);
        afterwards(done);
      }, concurrency),
    ),
};

export const fastqSyncWithSet: AbleKind = {
  name: 'fastq + Set',
  role: 'rival',
  note: WITH_SET_NOTE,
  open: (jobs, concurrency) => {
    const queued = new Set<string>();
    const worker = (key: string, done: fastq.done): void => {
      queued.delete(key);
      jobs.work(key);
      afterwards(done);
    };
    return new QueueWithSet(fastq(worker, concurrency), queued);
  },
};

/** An async function behind a callback. */
function workOf(jobs: Work): (key: string) => Promise<void> {
  // eslint-disable-next-line @typescript-eslint/require-await -- what it costs that a worker is async
  return async (key) => {
    jobs.work(key);
  };
}

export const fastqAsync: QueueKind = {
  name: 'fastq',
  role: 'baseline',
  note: 'the function is called in a worker with a callback, whose own errors go nowhere.',
  open: (jobs, concurrency) => {
    const work = workOf(jobs);
    const worker = (key: string, done: fastq.done): void => {
      work(key).then(() => {
        done(null);
      }, done);
    };
    return new PlainQueue(fastq(worker, concurrency));
  },
};

export const fastqAsyncWithSet: QueueKind = {
  name: 'fastq + Set',
  role: 'rival',
  note: WITH_SET_NOTE,
  open: (jobs, concurrency) => {
    const work = workOf(jobs);
    const queued = new Set<string>();
    const worker = (key: string, done: fastq.done): void => {
      queued.delete(key);
      work(key).then(() => {
        done(null);
      }, done);
    };
    return new QueueWithSet(fastq(worker, concurrency), queued);
  },
};

class PromiseQueue implements JobQueue {
  readonly #queue: fastq.queueAsPromised<string>;

  constructor(queue: fastq.queueAsPromised<string>) {
    this.#queue = queue;
  }

  addAll(keys: readonly string[]): void {
    const queue = this.#queue;
    for (const key of keys) void queue.push(key);
  }

  add(key: string): void {
    void this.#queue.push(key);
  }

  close(): void {
    close(this.#queue);
  }
}

export const fastqPromise: QueueKind = {
  name: 'fastq.promise',
  role: 'rival',
  note: 'it makes a promise for each job.',
  open: (jobs, concurrency) => new PromiseQueue(fastq.promise(workOf(jobs), concurrency)),
};
