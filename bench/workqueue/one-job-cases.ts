/** One job after the other: the next one comes when the one before is done, so the queue is empty all the time. */
import { queue as asyncQueue } from 'async';
import fastq from 'fastq';
import PQueue from 'p-queue';
import { WorkQueue } from 'escapement';
import { TIME } from '../lib/measurement.ts';
import type { BulkCase, BulkRun, Contestant } from '../lib/part.ts';
import { Jobs } from './jobs.ts';
import { DISTINCT, keysUpTo } from './keys.ts';

/** Does a job for each key, and goes through the keys several times. */
type Loop = (keys: readonly string[], rounds: number) => Promise<void>;

/** Makes the queue, which whoever has the loop keeps: see `Residents`. */
type Prepare = (jobs: Jobs) => Loop;

const withFastqPromise: Prepare = (jobs) => {
  // eslint-disable-next-line @typescript-eslint/require-await -- it must return a promise
  const worker = async (key: string): Promise<void> => {
    jobs.work(key);
  };
  const queue = fastq.promise(worker, 1);
  return async (keys, rounds) => {
    for (let round = 0; round < rounds; round++) for (const key of keys) await queue.push(key);
  };
};

const withFastqAtOnce: Prepare = (jobs) => {
  const worker = (key: string, done: fastq.done): void => {
    jobs.work(key);
    done(null);
  };
  const queue = fastq(worker, 1);
  return (keys, rounds) => {
    for (let round = 0; round < rounds; round++) for (const key of keys) queue.push(key);
    return Promise.resolve();
  };
};

const withAsyncQueue: Prepare = (jobs) => {
  const worker = (key: string, done: (error?: Error) => void): void => {
    jobs.work(key);
    done();
  };
  const queue = asyncQueue(worker, 1);
  return async (keys, rounds) => {
    for (let round = 0; round < rounds; round++) for (const key of keys) await queue.push(key);
  };
};

const withPQueue: Prepare = (jobs) => {
  const queue = new PQueue({ concurrency: 1 });
  return async (keys, rounds) => {
    for (let round = 0; round < rounds; round++) {
      for (const key of keys) {
        await queue.add(() => {
          jobs.work(key);
        });
      }
    }
  };
};

const withGetAndDone: Prepare = (jobs) => {
  const queue = new WorkQueue<string>();
  return async (keys, rounds) => {
    for (let round = 0; round < rounds; round++) {
      for (const key of keys) {
        queue.add(key);
        const taken = await queue.get();
        if (taken.shutdown) return;
        jobs.work(taken.item);
        queue.done(taken.item);
      }
    }
  };
};

/** Nobody but the worker knows when a job is done: it says so by a promise, which fastq.promise has within. */
const withRun: Prepare = (jobs) => {
  const queue = new WorkQueue<string>();
  let told: () => void = () => undefined;
  const running = queue.run((key) => {
    jobs.work(key);
    told();
  });
  return async (keys, rounds) => {
    for (let round = 0; round < rounds; round++) {
      for (const key of keys) {
        const done = new Promise<void>((resolve) => {
          told = resolve;
        });
        queue.add(key);
        await done;
      }
    }
    queue.shutDown();
    await running;
  };
};

interface Setting {
  readonly name: string;
  readonly note?: string;
  /** How many keys there are, for a number of jobs. */
  readonly keys: (size: number) => number;
}

const SAME_FOR_OTHERS = 'What knows no keys takes the same time as before, and is not run again.';

const SETTINGS: readonly Setting[] = [
  { name: 'always the same key', keys: () => 1 },
  { name: '10 000 keys in turn', note: SAME_FOR_OTHERS, keys: () => DISTINCT },
  { name: 'always a new key', note: SAME_FOR_OTHERS, keys: (size) => size },
];

function openWith(prepare: Prepare, countOf: Setting['keys']): (size: number) => BulkRun {
  return (size) => {
    const jobs = new Jobs();
    const keys = keysUpTo(countOf(size));
    const rounds = Math.ceil(size / keys.length);
    const loop = prepare(jobs);
    for (let round = 0; round < rounds; round++) void jobs.expect(keys);
    return {
      run: async () => {
        await loop(keys, rounds);
        return rounds * keys.length;
      },
      check: () => jobs.check(),
      close: () => undefined,
    };
  };
}

const BASELINE: Contestant<Prepare> = { name: 'fastq.promise', role: 'baseline', open: withFastqPromise };
const OTHERS: readonly Contestant<Prepare>[] = [
  {
    name: 'fastq, called back at once',
    role: 'rival',
    note: 'push calls the worker, which calls back: a few calls of functions, and nothing waits for anything.',
    open: withFastqAtOnce,
  },
  {
    name: 'async.queue',
    role: 'rival',
    note: 'it begins in a turn of the event loop of its own.',
    open: withAsyncQueue,
  },
  { name: 'p-queue', role: 'rival', open: withPQueue },
];
const OURS: readonly Contestant<Prepare>[] = [
  {
    name: 'ours: run',
    role: 'ours',
    note: 'who adds waits for a promise of the worker.',
    open: withRun,
  },
  { name: 'ours: get, done', role: 'ours', note: 'who adds is the worker, too.', open: withGetAndDone },
];

function oneJobCase({ name, note, keys }: Setting): BulkCase {
  const contestants = [BASELINE, ...(note === undefined ? OTHERS : []), ...OURS];
  return {
    kind: 'bulk',
    name: `one job after the other, each awaited: ${name}`,
    ...(note === undefined ? {} : { note }),
    size: { full: 500_000, quick: 4_000, of: 'jobs' },
    contestants: contestants.map((contestant) => ({
      ...contestant,
      open: openWith(contestant.open as Prepare, keys),
    })),
    targets: [{ kind: 'ratio', contestant: 'ours: get, done', metric: TIME, atLeast: 1 }],
  };
}

export const oneJobCases: readonly BulkCase[] = SETTINGS.map(oneJobCase);
