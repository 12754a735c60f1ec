/** The queues: fastq, a list of jobs with callbacks; async.queue; p-queue, a list of functions by priority; and ours. */
import { queue as asyncQueue, type QueueObject } from 'async';
import fastq from 'fastq';
import PQueue from 'p-queue';
import { defaultControllerRateLimiter, RateLimitingQueue, WorkQueue } from 'escapement';
import { baseline, ours, rival, type Contestant } from '../lib/part.ts';
import type { AwaitedQueue, JobQueue, OpenQueue, PausableQueue, Work } from './jobs.ts';

/** An async function that awaits nothing. */
function asyncWork(jobs: Work): (key: string) => Promise<void> {
  // eslint-disable-next-line @typescript-eslint/require-await -- measures the cost of an async worker
  return async (key) => {
    jobs.work(key);
  };
}

/** The worker of a fastq. */
type Worker = (key: string, done: fastq.done) => void;

const resolved = Promise.resolve();

/** It calls back by the cheapest way to leave the stack: `queueMicrotask` and `process.nextTick` cost more. */
function syncWorker(jobs: Work): Worker {
  return (key, done) => {
    jobs.work(key);
    void resolved.then(done as () => void);
  };
}

function asyncWorker(jobs: Work): Worker {
  const work = asyncWork(jobs);
  return (key, done) => {
    work(key).then(() => done(null), done);
  };
}

function openFast(workerOf: (jobs: Work) => Worker): OpenQueue<PausableQueue> {
  return (jobs, concurrency) => {
    const queue = fastq(workerOf(jobs), concurrency);
    return {
      addAll: (keys) => {
        for (const key of keys) queue.push(key);
      },
      add: (key) => queue.push(key),
      pause: () => void queue.pause(),
      start: () => void queue.resume(),
      waiting: () => queue.length(),
      close: () => void queue.kill(),
    };
  };
}

/** What one writes around fastq so that each key is queued once: a Set of the queued keys. */
function fastqWithSet(workerOf: (jobs: Work) => Worker): Contestant<OpenQueue> {
  const open: OpenQueue = (jobs, concurrency) => {
    const queued = new Set<string>();
    const work = workerOf(jobs);
    const worker: Worker = (key, done) => {
      queued.delete(key);
      work(key, done);
    };
    const queue = fastq(worker, concurrency);
    const add = (key: string): void => {
      if (queued.has(key)) return;
      queued.add(key);
      queue.push(key);
    };
    return {
      addAll: (keys) => {
        for (const key of keys) add(key);
      },
      add,
      close: () => void queue.kill(),
    };
  };
  const note = 'a key leaves the Set when its job starts; two workers may then have it at the same time.';
  return rival('fastq + Set', open, note);
}

export const openFastq = openFast(syncWorker);

export const fastqSync = baseline(
  'fastq',
  openFastq,
  'each callback is called by a promise that is resolved already; called at once, 10 000 would overflow the stack.',
);
export const fastqAsync = baseline(
  'fastq',
  openFast(asyncWorker),
  'a worker with a callback calls the function, whose own errors are lost.',
);

/** Without a callback, each push would make a promise. */
function asyncJobs(queue: QueueObject<string>): JobQueue & AwaitedQueue {
  const ignore = (): void => undefined;
  return {
    addAll: (keys) => {
      for (const key of keys) queue.push(key, ignore);
    },
    add: (key) => queue.push(key, ignore),
    doEach: async (keys) => {
      for (const key of keys) await queue.push(key);
    },
    close: () => queue.kill(),
  };
}

const openAsyncQueue: OpenQueue<JobQueue & AwaitedQueue> = (jobs, concurrency) => {
  const worker = (key: string, done: (error?: Error) => void): void => {
    jobs.work(key);
    done();
  };
  return asyncJobs(asyncQueue(worker, concurrency));
};
const asyncQueueSync = rival('async.queue', openAsyncQueue);

const asyncQueueAsync = rival<OpenQueue>('async.queue', (jobs, concurrency) =>
  // eslint-disable-next-line @typescript-eslint/no-misused-promises -- it accepts async functions, unlike its types
  asyncJobs(asyncQueue(asyncWork(jobs), concurrency)),
);

/** It awaits the result of the function, whether that is a promise or not. */
export const openPQueue: OpenQueue<PausableQueue & AwaitedQueue> = (jobs, concurrency) => {
  const queue = new PQueue({ concurrency });
  return {
    addAll: (keys) => {
      for (const key of keys) void queue.add(() => jobs.work(key));
    },
    add: (key) => void queue.add(() => jobs.work(key)),
    doEach: async (keys) => {
      for (const key of keys) await queue.add(() => jobs.work(key));
    },
    pause: () => queue.pause(),
    start: () => void queue.start(),
    waiting: () => queue.size,
    close: () => queue.clear(),
  };
};

export const pQueue = rival(
  'p-queue',
  openPQueue,
  'a job is a function, and add returns a promise of its result.',
);

/** @param serve - starts the workers. */
function openOurs(
  serve: (queue: WorkQueue<string>, jobs: Work, concurrency: number) => unknown,
  newQueue = (): WorkQueue<string> => new WorkQueue<string>(),
): OpenQueue {
  return (jobs, concurrency) => {
    const queue = newQueue();
    serve(queue, jobs, concurrency);
    return {
      addAll: (keys) => {
        for (const key of keys) queue.add(key);
      },
      add: (key) => queue.add(key),
      close: () => queue.shutDown(),
    };
  };
}

const runSync = ours(
  'ours: run',
  openOurs((queue, jobs, concurrency) => queue.run((key) => jobs.work(key), { concurrency })),
);
const runAsync = ours(
  'ours: run',
  openOurs((queue, jobs, concurrency) => queue.run(asyncWork(jobs), { concurrency })),
);
export const openRetrying = openOurs(
  (queue, jobs, concurrency) => queue.run(asyncWork(jobs), { concurrency }),
  () => new RateLimitingQueue<string>(defaultControllerRateLimiter()),
);

async function serveByHand(queue: WorkQueue<string>, jobs: Work): Promise<void> {
  const work = asyncWork(jobs);
  for (let taken = await queue.get(); !taken.shutdown; taken = await queue.get()) {
    await work(taken.item);
    queue.done(taken.item);
  }
}

const openFastqPromise: OpenQueue<AwaitedQueue> = (jobs, concurrency) => {
  const queue = fastq.promise(asyncWork(jobs), concurrency);
  return {
    doEach: async (keys) => {
      for (const key of keys) await queue.push(key);
    },
    close: () => void queue.kill(),
  };
};

const byCaller: OpenQueue<AwaitedQueue> = (jobs) => {
  const queue = new WorkQueue<string>();
  return {
    doEach: async (keys) => {
      for (const key of keys) {
        queue.add(key);
        const taken = await queue.get();
        if (taken.shutdown) return;
        jobs.work(taken.item);
        queue.done(taken.item);
      }
    },
    close: () => queue.shutDown(),
  };
};

/** The queues whose caller waits for each job. */
export const AWAITED_QUEUES: readonly Contestant<OpenQueue<AwaitedQueue>>[] = [
  baseline('fastq.promise', openFastqPromise),
  rival('async.queue', openAsyncQueue, 'it starts in another turn of the event loop.'),
  rival('p-queue', openPQueue),
  ours('ours: get, done', byCaller, 'the caller is the worker, too.'),
];

/** The queues that are compared, by what their workers do; and those that can have a million jobs. */
export const QUEUES = {
  sync: [fastqSync, fastqWithSet(syncWorker), asyncQueueSync, pQueue, runSync],
  async: [
    ...[fastqAsync, fastqWithSet(asyncWorker), asyncQueueAsync, pQueue, runAsync],
    ours('ours: get, done', openOurs(serveByHand), 'by one worker.'),
  ],
  backlogged: [fastqSync, fastqWithSet(syncWorker), asyncQueueSync, runSync],
} satisfies Record<string, readonly Contestant<OpenQueue>[]>;
