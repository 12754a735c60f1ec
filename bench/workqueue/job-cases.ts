/** Jobs from add to done: in bursts, one after the other, and with a backlog that never empties. */
import { performance } from 'node:perf_hooks';
import { queue as asyncQueue } from 'async';
import fastq from 'fastq';
import PQueue from 'p-queue';
import { WorkQueue } from 'escapement';
import { bulk, scenario, type BulkRun, type Scenario } from '../lib/kinds.ts';
import { aside, atLeast, atMost, baseline, contest, metric, ours, rival, TIME } from '../lib/part.ts';
import { NS_PER_MS, unable, type BenchCase, type Contestant, type Measurement } from '../lib/part.ts';
import { DISTINCT, dropKeys, Jobs, keysUpTo, newKeys } from './jobs.ts';
import type { JobQueue, OpenQueue, Work } from './jobs.ts';
import * as queues from './queues.ts';

/** A million jobs a second. */
const MOST_NS = 1_000;

const SYNC: readonly Contestant<OpenQueue>[] = [
  queues.fastqSync,
  queues.fastqAtOnce,
  queues.fastqSyncWithSet,
  queues.asyncQueueSync,
  queues.pQueue,
  queues.runSync,
  queues.byHandSync,
  queues.leasesSync,
];
const ASYNC: readonly Contestant<OpenQueue>[] = [
  queues.fastqAsync,
  queues.fastqAsyncWithSet,
  queues.asyncQueueAsync,
  queues.pQueue,
  queues.runAsync,
  queues.byHandAsync,
];

function burstCase(
  name: string,
  kinds: readonly Contestant<OpenQueue>[],
  concurrency: number,
  keysOf: (count: number) => readonly string[] = keysUpTo,
  note?: string,
): BenchCase {
  return bulk({
    name: `bursts of 10 000 jobs with keys of their own: ${name}`,
    note,
    size: { full: 500_000, quick: 10_000, of: 'jobs' },
    contestants: contest(kinds, (open) => (size: number): BulkRun => {
      const jobs = new Jobs();
      const queue = open(jobs, concurrency);
      const bursts = Math.max(Math.round(size / DISTINCT), 1);
      return {
        run: async () => {
          for (let burst = 0; burst < bursts; burst++) {
            const keys = keysOf(DISTINCT);
            const allDone = jobs.expect(keys);
            queue.addAll(keys);
            await allDone;
          }
        },
        items: () => bursts * DISTINCT,
        check: () => jobs.check(),
        close: () => queue.close(),
      };
    }),
    targets: [atMost('ours: run', TIME, MOST_NS), atLeast('ours: run', TIME, 1)],
  });
}

export const burstCases = [
  burstCase('the worker returns', SYNC, 1),
  burstCase(
    'the worker is async',
    [...ASYNC, queues.fastqPromise, queues.runWithRetries, queues.leasesAsync],
    1,
  ),
  burstCase('the worker is async, 10 at once', ASYNC, 10),
  burstCase(
    'the worker is async, every key is a new string',
    ASYNC,
    1,
    newKeys,
    'The time includes making the strings. A map compares equal strings character by character.',
  ),
];

/** Does a job for each key, one after the other. */
type Loop = (keys: readonly string[]) => Promise<void>;

/** Makes the queue, which the loop keeps alive (see `keepFirst`). */
type Prepare = (jobs: Jobs) => Loop;

const withFastqPromise: Prepare = (jobs) => {
  // eslint-disable-next-line @typescript-eslint/require-await -- it must return a promise
  const worker = async (key: string): Promise<void> => {
    jobs.work(key);
  };
  const queue = fastq.promise(worker, 1);
  return async (keys) => {
    for (const key of keys) await queue.push(key);
  };
};

const withFastqAtOnce: Prepare = (jobs) => {
  const worker = (key: string, done: fastq.done): void => {
    jobs.work(key);
    done(null);
  };
  const queue = fastq(worker, 1);
  return (keys) => {
    for (const key of keys) queue.push(key);
    return Promise.resolve();
  };
};

const withAsyncQueue: Prepare = (jobs) => {
  const worker = (key: string, done: (error?: Error) => void): void => {
    jobs.work(key);
    done();
  };
  const queue = asyncQueue(worker, 1);
  return async (keys) => {
    for (const key of keys) await queue.push(key);
  };
};

const withPQueue: Prepare = (jobs) => {
  const queue = new PQueue({ concurrency: 1 });
  return async (keys) => {
    for (const key of keys) {
      await queue.add(() => jobs.work(key));
    }
  };
};

const withGetAndDone: Prepare = (jobs) => {
  const queue = new WorkQueue<string>();
  return async (keys) => {
    for (const key of keys) {
      queue.add(key);
      const taken = await queue.get();
      if (taken.shutdown) return;
      jobs.work(taken.item);
      queue.done(taken.item);
    }
  };
};

/** Only the worker detects the end of a job, so it resolves a promise, as fastq.promise does internally. */
const withRun: Prepare = (jobs) => {
  const queue = new WorkQueue<string>();
  let onDone: () => void = () => undefined;
  const running = queue.run((key) => {
    jobs.work(key);
    onDone();
  });
  return async (keys) => {
    for (const key of keys) {
      const done = new Promise<void>((resolve) => {
        onDone = resolve;
      });
      queue.add(key);
      await done;
    }
    queue.shutDown();
    await running;
  };
};

const BASELINE = baseline('fastq.promise', withFastqPromise);
const OURS = [
  ours('ours: run', withRun, 'the caller waits for a promise that the worker resolves.'),
  ours('ours: get, done', withGetAndDone, 'the caller is the worker, too.'),
];
const ALL = [
  BASELINE,
  rival(
    'fastq, called back at once',
    withFastqAtOnce,
    'push calls the worker, which calls back: a few function calls, and no waiting.',
  ),
  rival('async.queue', withAsyncQueue, 'it starts in another turn of the event loop.'),
  rival('p-queue', withPQueue),
  ...OURS,
];
const SAME_FOR_OTHERS = 'Queues without keys take the same time as in the first case, and are not run again.';

/** @param keysFor - number of distinct keys for a number of jobs. */
function oneJobCase(
  name: string,
  kinds: readonly Contestant<Prepare>[],
  keysFor: (size: number) => number,
  note?: string,
): BenchCase {
  return bulk({
    name: `one job after the other, each awaited: ${name}`,
    note,
    size: { full: 500_000, quick: 4_000, of: 'jobs' },
    contestants: contest(kinds, (prepare) => (size: number): BulkRun => {
      const jobs = new Jobs();
      const distinct = keysUpTo(keysFor(size));
      const keys = Array.from({ length: size }, (_, index) => distinct[index % distinct.length] as string);
      const loop = prepare(jobs);
      void jobs.expect(keys);
      return {
        run: () => loop(keys),
        check: () => jobs.check(),
      };
    }),
    targets: [atLeast('ours: get, done', TIME, 1)],
  });
}

export const oneJobCases = [
  oneJobCase('always the same key', ALL, () => 1),
  oneJobCase('10 000 keys in turn', [BASELINE, ...OURS], () => DISTINCT, SAME_FOR_OTHERS),
  oneJobCase('always a new key', [BASELINE, ...OURS], (size) => size, SAME_FOR_OTHERS),
];

/** The smaller backlog is this part of the larger one. */
const PART = 100;
/** A key returns after twice as many jobs as are in the backlog: the queue does not have it any more then. */
const KEYS_PER_JOB = 2;
/** The larger backlog is processed twice, because a Map of a million is rehashed about once in a million changes. */
const TIMES_THROUGH = 2;
const FEW = 'a hundredth in line';
const MANY = 'all in line';
const GROWTH = 'growth';
const MOST_GROWTH = 3;

/** Each job adds another one, until `size` are done. The end comes without a turn of the event loop, if need be. */
class EndlessJobs implements Work {
  readonly finished: Promise<void>;
  #worked = 0;
  readonly #keys: readonly string[];
  readonly #size: number;
  #next: number;
  #queue: JobQueue | undefined;
  #finish: () => void = () => undefined;

  constructor(backlog: number, size: number) {
    this.#keys = keysUpTo(backlog * KEYS_PER_JOB);
    this.#size = size;
    this.#next = backlog;
    this.finished = new Promise((resolve) => {
      this.#finish = resolve;
    });
  }

  /** Jobs that are done before this call add none. */
  start(queue: JobQueue): void {
    this.#queue = queue;
    this.#worked = 0;
  }

  work(): void {
    if (++this.#worked === this.#size) {
      this.#queue = undefined;
      this.#finish();
    }
    if (this.#queue === undefined) return;
    this.#queue.add(this.#keys[this.#next] as string);
    this.#next = this.#next + 1 === this.#keys.length ? 0 : this.#next + 1;
  }
}

/** @returns nanoseconds for each of `size` jobs, with `backlog` in line all the time. */
async function timeOf(open: OpenQueue, backlog: number, size: number): Promise<number> {
  const jobs = new EndlessJobs(backlog, size);
  const queue = open(jobs, 1);
  queue.addAll(keysUpTo(backlog));
  jobs.start(queue);
  const startMs = performance.now();
  await jobs.finished;
  const elapsedMs = performance.now() - startMs;
  queue.close();
  return (elapsedMs * NS_PER_MS) / size;
}

/** What every queue with keys must do: set the newest key, delete the oldest one. */
function timeOfMap(backlog: number, size: number): number {
  const map = new Map<string, number>();
  const keys = keysUpTo(backlog * KEYS_PER_JOB);
  for (let place = 0; place < backlog; place++) map.set(keys[place] as string, place);
  let oldest = 0;
  let next = backlog;
  const startMs = performance.now();
  for (let done = 0; done < size; done++) {
    map.set(keys[next] as string, next);
    map.delete(keys[oldest] as string);
    oldest = oldest + 1 === keys.length ? 0 : oldest + 1;
    next = next + 1 === keys.length ? 0 : next + 1;
  }
  const elapsedMs = performance.now() - startMs;
  return map.size === backlog ? (elapsedMs * NS_PER_MS) / size : Number.NaN;
}

async function compareBacklogs(
  backlog: number,
  measure: (backlog: number, size: number) => number | Promise<number>,
): Promise<Measurement> {
  const size = backlog * TIMES_THROUGH;
  const part = Math.ceil(backlog / PART);
  // Discarded: garbage of the contestant before makes the first run three times as slow.
  await measure(part, size);
  const few = await measure(part, size);
  const many = await measure(backlog, size);
  dropKeys();
  return {
    values: { [MANY]: many, [FEW]: few, [GROWTH]: many / few },
    problem: Number.isNaN(few + many) ? 'the map has a wrong size' : undefined,
  };
}

const BACKLOGGED = [
  queues.fastqSync,
  queues.fastqSyncWithSet,
  queues.asyncQueueSync,
  queues.runSync,
  queues.byHandSync,
];

export const backlogCase = scenario({
  name: 'a backlog: each job adds a new key at the back',
  note: 'Growth is the time with all in line, divided by the time with a hundredth. That of a bare Map grows too, because of cache misses.',
  size: { full: 1_000_000, quick: 20_000, of: 'jobs in line' },
  rounds: 3,
  metrics: [metric(MANY, 'ns/job'), metric(FEW, 'ns/job'), aside(GROWTH)],
  contestants: [
    ...contest<OpenQueue, Scenario>(
      BACKLOGGED,
      (open) => (backlog) => compareBacklogs(backlog, (inLine, size) => timeOf(open, inLine, size)),
    ),
    unable('p-queue', 'at 850 bytes each, a million of its jobs would take 850 MB'),
    rival(
      'a bare Map',
      (backlog) => compareBacklogs(backlog, timeOfMap),
      'no queue: set of a new key and delete of the oldest one, which every queue with keys must do.',
    ),
  ],
  targets: [atMost('ours: run', GROWTH, MOST_GROWTH)],
});
