/** The queues: fastq, a list of jobs with callbacks; async.queue; p-queue, a list of functions by priority; and ours. */
import { queue as asyncQueue, type QueueObject } from 'async';
import fastq from 'fastq';
import PQueue from 'p-queue';
import { defaultControllerRateLimiter, RateLimitingQueue, WorkQueue } from 'escapement';
import { baseline, ours, rival, unable } from '../lib/part.ts';
import type { JobQueue, OpenQueue, PausableQueue, Work } from './jobs.ts';

type Handler = (key: string) => void | Promise<void>;

function syncWork(jobs: Work): Handler {
  return (key) => jobs.work(key);
}

/** An async function that awaits nothing. */
function asyncWork(jobs: Work): (key: string) => Promise<void> {
  // eslint-disable-next-line @typescript-eslint/require-await -- measures the cost of an async worker
  return async (key) => {
    jobs.work(key);
  };
}

function fastQueue(queue: fastq.queue<string>): PausableQueue {
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
}

/** What one writes around fastq so that each key is queued once: a Set of the queued keys. */
function queueWithSet(queue: fastq.queue<string>, queued: Set<string>): JobQueue {
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
}

const resolved = Promise.resolve();

/** The cheapest way to leave the stack: `queueMicrotask` and `process.nextTick` cost more. */
function afterwards(done: fastq.done): void {
  void resolved.then(done as () => void);
}

const WITH_SET_NOTE =
  'a key leaves the Set when its job starts; two workers may then have it at the same time.';

export const openFastq: OpenQueue<PausableQueue> = (jobs, concurrency) =>
  fastQueue(
    fastq((key: string, done: fastq.done) => {
      jobs.work(key);
      afterwards(done);
    }, concurrency),
  );

export const openFastqWithSet: OpenQueue = (jobs, concurrency) => {
  const queued = new Set<string>();
  const worker = (key: string, done: fastq.done): void => {
    queued.delete(key);
    jobs.work(key);
    afterwards(done);
  };
  return queueWithSet(fastq(worker, concurrency), queued);
};

export const fastqSync = baseline(
  'fastq',
  openFastq,
  'each callback is called by a promise that is resolved already; called at once, 10 000 would overflow the stack.',
);
export const fastqSyncWithSet = rival('fastq + Set', openFastqWithSet, WITH_SET_NOTE);
export const fastqAtOnce = unable(
  'fastq, called back at once',
  'push runs each job, and nothing is ever queued; paused until 10 000 are, its callbacks overflow the stack',
);

export const fastqAsync = baseline<OpenQueue>(
  'fastq',
  (jobs, concurrency) => {
    const work = asyncWork(jobs);
    const worker = (key: string, done: fastq.done): void => {
      work(key).then(() => done(null), done);
    };
    return fastQueue(fastq(worker, concurrency));
  },
  'a worker with a callback calls the function, whose own errors are lost.',
);

export const fastqAsyncWithSet = rival<OpenQueue>(
  'fastq + Set',
  (jobs, concurrency) => {
    const work = asyncWork(jobs);
    const queued = new Set<string>();
    const worker = (key: string, done: fastq.done): void => {
      queued.delete(key);
      work(key).then(() => done(null), done);
    };
    return queueWithSet(fastq(worker, concurrency), queued);
  },
  WITH_SET_NOTE,
);

export const fastqPromise = rival<OpenQueue>(
  'fastq.promise',
  (jobs, concurrency) => {
    const queue = fastq.promise(asyncWork(jobs), concurrency);
    return {
      addAll: (keys) => {
        for (const key of keys) void queue.push(key);
      },
      add: (key) => void queue.push(key),
      close: () => void queue.kill(),
    };
  },
  'it makes a promise for each job.',
);

const ignore = (): void => undefined;

/** Without a callback, each push would make a promise. */
function asyncJobs(queue: QueueObject<string>): JobQueue {
  return {
    addAll: (keys) => {
      for (const key of keys) queue.push(key, ignore);
    },
    add: (key) => queue.push(key, ignore),
    close: () => queue.kill(),
  };
}

export const asyncQueueSync = rival<OpenQueue>('async.queue', (jobs, concurrency) => {
  const worker = (key: string, done: (error?: Error) => void): void => {
    jobs.work(key);
    done();
  };
  return asyncJobs(asyncQueue(worker, concurrency));
});

export const asyncQueueAsync = rival<OpenQueue>('async.queue', (jobs, concurrency) =>
  // eslint-disable-next-line @typescript-eslint/no-misused-promises -- it accepts async functions, unlike its types
  asyncJobs(asyncQueue(asyncWork(jobs), concurrency)),
);

/** It awaits the result of the function, whether that is a promise or not. */
export const openPQueue: OpenQueue<PausableQueue> = (jobs, concurrency) => {
  const queue = new PQueue({ concurrency });
  return {
    addAll: (keys) => {
      for (const key of keys) void queue.add(() => jobs.work(key));
    },
    add: (key) => void queue.add(() => jobs.work(key)),
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

function ourQueue(queue: WorkQueue<string>): JobQueue {
  return {
    addAll: (keys) => {
      for (const key of keys) queue.add(key);
    },
    add: (key) => queue.add(key),
    close: () => queue.shutDown(),
  };
}

function running(newQueue: () => WorkQueue<string>, handlerOf: (jobs: Work) => Handler): OpenQueue {
  return (jobs, concurrency) => {
    const queue = newQueue();
    void queue.run(handlerOf(jobs), { concurrency });
    return ourQueue(queue);
  };
}

/** @param serve - the loop of one worker. */
function served(serve: (queue: WorkQueue<string>, jobs: Work) => Promise<void>): OpenQueue {
  return (jobs, concurrency) => {
    const queue = new WorkQueue<string>();
    for (let worker = 0; worker < concurrency; worker++) void serve(queue, jobs);
    return ourQueue(queue);
  };
}

const newQueue = (): WorkQueue<string> => new WorkQueue<string>();
const newRetryingQueue = (): WorkQueue<string> =>
  new RateLimitingQueue<string>(defaultControllerRateLimiter());

export const runSync = ours('ours: run', running(newQueue, syncWork));
export const runAsync = ours('ours: run', running(newQueue, asyncWork));
export const openRetrying = running(newRetryingQueue, asyncWork);
export const runWithRetries = ours(
  'ours: RateLimitingQueue',
  openRetrying,
  'run of the queue that retries failed jobs; none fails.',
);

export const byHandSync = ours(
  'ours: get, done',
  served(async (queue, jobs) => {
    for (let taken = await queue.get(); !taken.shutdown; taken = await queue.get()) {
      jobs.work(taken.item);
      queue.done(taken.item);
    }
  }),
);

export const byHandAsync = ours(
  'ours: get, done',
  served(async (queue, jobs) => {
    const work = asyncWork(jobs);
    for (let taken = await queue.get(); !taken.shutdown; taken = await queue.get()) {
      await work(taken.item);
      queue.done(taken.item);
    }
  }),
);

const LEASES_NOTE = 'each item comes with a lease that can be settled once.';

export const leasesSync = ours(
  'ours: for await',
  served(async (queue, jobs) => {
    for await (const lease of queue) {
      jobs.work(lease.item);
      lease.done();
    }
  }),
  LEASES_NOTE,
);

export const leasesAsync = ours(
  'ours: for await',
  served(async (queue, jobs) => {
    const work = asyncWork(jobs);
    for await (const lease of queue) {
      await work(lease.item);
      lease.done();
    }
  }),
  LEASES_NOTE,
);
