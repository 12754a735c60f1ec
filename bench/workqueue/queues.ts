/** The queues: fastq, a list of jobs with callbacks; async.queue; p-queue, a list of functions by priority; and ours. */
import { queue as asyncQueue, type QueueObject } from 'async';
import fastq from 'fastq';
import PQueue from 'p-queue';
import { defaultControllerRateLimiter, RateLimitingQueue, WorkQueue } from 'escapement';
import { baseline, ours, rival, unable, type Contestant } from '../lib/part.ts';
import type { AwaitedQueue, JobQueue, OpenQueue, PausableQueue, Work } from './jobs.ts';

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
function openFastWithSet(workerOf: (jobs: Work) => Worker): OpenQueue {
  return (jobs, concurrency) => {
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
}

export const openFastq = openFast(syncWorker);
export const openFastqWithSet = openFastWithSet(syncWorker);

const WITH_SET_NOTE =
  'a key leaves the Set when its job starts; two workers may then have it at the same time.';

export const fastqSync = baseline(
  'fastq',
  openFastq,
  'each callback is called by a promise that is resolved already; called at once, 10 000 would overflow the stack.',
);
const fastqSyncWithSet = rival('fastq + Set', openFastqWithSet, WITH_SET_NOTE);
const fastqAtOnce = unable(
  'fastq, called back at once',
  'push runs each job, and nothing is ever queued; paused until 10 000 are, its callbacks overflow the stack',
);
export const fastqAsync = baseline(
  'fastq',
  openFast(asyncWorker),
  'a worker with a callback calls the function, whose own errors are lost.',
);
const fastqAsyncWithSet = rival('fastq + Set', openFastWithSet(asyncWorker), WITH_SET_NOTE);

const openFastqPromise: OpenQueue<JobQueue & AwaitedQueue> = (jobs, concurrency) => {
  const queue = fastq.promise(asyncWork(jobs), concurrency);
  return {
    addAll: (keys) => {
      for (const key of keys) void queue.push(key);
    },
    add: (key) => void queue.push(key),
    doEach: async (keys) => {
      for (const key of keys) await queue.push(key);
    },
    close: () => void queue.kill(),
  };
};

export const fastqPromise = rival('fastq.promise', openFastqPromise, 'it makes a promise for each job.');

const ignore = (): void => undefined;

/** Without a callback, each push would make a promise. */
function asyncJobs(queue: QueueObject<string>): JobQueue & AwaitedQueue {
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

/** @param serve - the loop of one worker. */
function served(serve: (queue: WorkQueue<string>, jobs: Work) => Promise<void>): OpenQueue {
  return openOurs((queue, jobs, concurrency) => {
    for (let worker = 0; worker < concurrency; worker++) void serve(queue, jobs);
  });
}

const runSync = ours(
  'ours: run',
  openOurs((queue, jobs, concurrency) => queue.run(syncWork(jobs), { concurrency })),
);
const runAsync = ours(
  'ours: run',
  openOurs((queue, jobs, concurrency) => queue.run(asyncWork(jobs), { concurrency })),
);
export const openRetrying = openOurs(
  (queue, jobs, concurrency) => queue.run(asyncWork(jobs), { concurrency }),
  () => new RateLimitingQueue<string>(defaultControllerRateLimiter()),
);
const runWithRetries = ours(
  'ours: RateLimitingQueue',
  openRetrying,
  'run of the queue that retries failed jobs; none fails.',
);

const byHandSync = ours(
  'ours: get, done',
  served(async (queue, jobs) => {
    for (let taken = await queue.get(); !taken.shutdown; taken = await queue.get()) {
      jobs.work(taken.item);
      queue.done(taken.item);
    }
  }),
);

const byHandAsync = ours(
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

const leasesSync = ours(
  'ours: for await',
  served(async (queue, jobs) => {
    for await (const lease of queue) {
      jobs.work(lease.item);
      lease.done();
    }
  }),
  LEASES_NOTE,
);

const leasesAsync = ours(
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

const calledBackAtOnce: OpenQueue<AwaitedQueue> = (jobs, concurrency) => {
  const worker: Worker = (key, done) => {
    jobs.work(key);
    done(null);
  };
  const queue = fastq(worker, concurrency);
  return {
    doEach: (keys) => {
      for (const key of keys) queue.push(key);
      return Promise.resolve();
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

/** Only the worker detects the end of a job, so it resolves a promise, as fastq.promise does internally. */
const byRun: OpenQueue<AwaitedQueue> = (jobs, concurrency) => {
  const queue = new WorkQueue<string>();
  let onDone: () => void = () => undefined;
  const work = (key: string): void => {
    jobs.work(key);
    onDone();
  };
  void queue.run(work, { concurrency });
  return {
    doEach: async (keys) => {
      for (const key of keys) {
        const done = new Promise<void>((resolve) => {
          onDone = resolve;
        });
        queue.add(key);
        await done;
      }
    },
    close: () => queue.shutDown(),
  };
};

const fastqAwaited = baseline('fastq.promise', openFastqPromise);
const AWAITED = [
  ours('ours: run', byRun, 'the caller waits for a promise that the worker resolves.'),
  ours('ours: get, done', byCaller, 'the caller is the worker, too.'),
];

/** The queues whose caller waits for each job. */
export const AWAITED_QUEUES = {
  all: [
    fastqAwaited,
    rival(
      'fastq, called back at once',
      calledBackAtOnce,
      'push calls the worker, which calls back: a few function calls, and no waiting.',
    ),
    rival('async.queue', openAsyncQueue, 'it starts in another turn of the event loop.'),
    rival('p-queue', openPQueue),
    ...AWAITED,
  ],
  withKeys: [fastqAwaited, ...AWAITED],
} satisfies Record<string, readonly Contestant<OpenQueue<AwaitedQueue>>[]>;

const ASYNC = [fastqAsync, fastqAsyncWithSet, asyncQueueAsync, pQueue, runAsync, byHandAsync];

/** The queues that are compared, by what their workers do. */
export const QUEUES = {
  sync: [
    ...[fastqSync, fastqAtOnce, fastqSyncWithSet, asyncQueueSync, pQueue],
    ...[runSync, byHandSync, leasesSync],
  ],
  async: ASYNC,
  anyAsync: [...ASYNC, fastqPromise, runWithRetries, leasesAsync],
  backlogged: [fastqSync, fastqSyncWithSet, asyncQueueSync, runSync, byHandSync],
} satisfies Record<string, readonly Contestant<OpenQueue>[]>;
