/** Jobs from add to done: in bursts, one after the other, and with a backlog that never empties. */
import { performance } from 'node:perf_hooks';
import { queue as asyncQueue } from 'async';
import fastq from 'fastq';
import PQueue from 'p-queue';
import { WorkQueue } from 'escapement';
import type { OpenBulk, Scenario } from '../lib/kinds.ts';
import { baseline, contest, NS_PER_MS, ours, rival, unable } from '../lib/part.ts';
import type { Contestant, Measurement } from '../lib/part.ts';
import { DISTINCT, dropKeys, Jobs, KeysInTurn, keysUpTo, newKeys } from './jobs.ts';
import type { JobQueue, OpenQueue, Work } from './jobs.ts';
import { QUEUES } from './queues.ts';

export function bursts(
  queues: 'sync' | 'async' | 'anyAsync',
  concurrency: number,
  areKeysNew = false,
): Contestant<OpenBulk>[] {
  const keysOf = areKeysNew ? newKeys : keysUpTo;
  return contest<OpenQueue, OpenBulk>(QUEUES[queues], (open) => (size) => {
    const jobs = new Jobs();
    const queue = open(jobs, concurrency);
    const count = Math.max(Math.round(size / DISTINCT), 1);
    return {
      run: async () => {
        for (let burst = 0; burst < count; burst++) {
          const keys = keysOf(DISTINCT);
          const allDone = jobs.expect(keys);
          queue.addAll(keys);
          await allDone;
        }
      },
      items: () => count * DISTINCT,
      check: () => jobs.check(),
      close: () => queue.close(),
    };
  });
}

/** Makes the queue, which the loop keeps alive (see `keepFirst`). The loop does a job for each key, one after the other. */
type Prepare = (jobs: Jobs) => (keys: readonly string[]) => Promise<void>;

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
    for (const key of keys) await queue.add(() => jobs.work(key));
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

const FASTQ = baseline('fastq.promise', withFastqPromise);
const OURS = [
  ours('ours: run', withRun, 'the caller waits for a promise that the worker resolves.'),
  ours('ours: get, done', withGetAndDone, 'the caller is the worker, too.'),
];
const AWAITED = {
  all: [
    FASTQ,
    rival(
      'fastq, called back at once',
      withFastqAtOnce,
      'push calls the worker, which calls back: a few function calls, and no waiting.',
    ),
    rival('async.queue', withAsyncQueue, 'it starts in another turn of the event loop.'),
    rival('p-queue', withPQueue),
    ...OURS,
  ],
  withKeys: [FASTQ, ...OURS],
};

/** @param distinctKeys - at most one for each job. */
export function oneByOne(queues: keyof typeof AWAITED, distinctKeys: number): Contestant<OpenBulk>[] {
  return contest<Prepare, OpenBulk>(AWAITED[queues], (prepare) => (size) => {
    const jobs = new Jobs();
    const distinct = keysUpTo(Math.min(distinctKeys, size));
    const keys = Array.from({ length: size }, (_, index) => distinct[index % distinct.length] as string);
    const loop = prepare(jobs);
    void jobs.expect(keys);
    return { run: () => loop(keys), check: () => jobs.check() };
  });
}

/** The smaller backlog is this part of the larger one. */
const PART = 100;
/** A key returns after twice as many jobs as are in the backlog: the queue does not have it any more then. */
const KEYS_PER_JOB = 2;
/** The larger backlog is processed twice, because a Map of a million is rehashed about once in a million changes. */
const TIMES_THROUGH = 2;

/** Each job adds another one, until `size` are done. The end comes without a turn of the event loop, if need be. */
class EndlessJobs implements Work {
  readonly finished: Promise<void>;
  #worked = 0;
  readonly #keys: KeysInTurn;
  readonly #size: number;
  #queue: JobQueue | undefined;
  #finish: () => void = () => undefined;

  constructor(backlog: number, size: number) {
    this.#keys = new KeysInTurn(keysUpTo(backlog * KEYS_PER_JOB), backlog);
    this.#size = size;
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
    this.#queue?.add(this.#keys.next());
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
  const keys = keysUpTo(backlog * KEYS_PER_JOB);
  const map = new Map(keys.slice(0, backlog).map((key, place) => [key, place]));
  const [oldest, newest] = [new KeysInTurn(keys), new KeysInTurn(keys, backlog)];
  const startMs = performance.now();
  for (let done = 0; done < size; done++) {
    map.set(newest.next(), done);
    map.delete(oldest.next());
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
    values: { 'all in line': many, 'a hundredth in line': few, growth: many / few },
    problem: Number.isNaN(few + many) ? 'the map has a wrong size' : undefined,
  };
}

export const backlog: readonly Contestant<Scenario>[] = [
  ...contest<OpenQueue, Scenario>(
    QUEUES.backlogged,
    (open) => (jobs) => compareBacklogs(jobs, (inLine, size) => timeOf(open, inLine, size)),
  ),
  unable('p-queue', 'at 850 bytes each, a million of its jobs would take 850 MB'),
  rival(
    'a bare Map',
    (jobs) => compareBacklogs(jobs, timeOfMap),
    'no queue: set of a new key and delete of the oldest one, which every queue with keys must do.',
  ),
];
