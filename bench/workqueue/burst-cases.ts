/** Jobs in bursts, each burst worked through before the next one comes. */
import type { BulkCase, BulkRun } from '../lib/part.ts';
import { TIME } from '../lib/measurement.ts';
import type { Target } from '../lib/target.ts';
import {
  fastqAsync,
  fastqAsyncWithSet,
  fastqAtOnce,
  fastqPromise,
  fastqSync,
  fastqSyncWithSet,
} from './fastq-queues.ts';
import { contest, type QueueKind } from './job-queue.ts';
import { Jobs } from './jobs.ts';
import { DISTINCT, keysUpTo, newKeys } from './keys.ts';
import { asyncQueueAsync, asyncQueueSync, pQueue } from './other-queues.ts';
import {
  byHandAsync,
  byHandSync,
  leasesAsync,
  leasesSync,
  runAsync,
  runSync,
  runWithRetries,
} from './our-queues.ts';

const SYNC: readonly QueueKind[] = [
  fastqSync,
  fastqAtOnce,
  fastqSyncWithSet,
  asyncQueueSync,
  pQueue,
  runSync,
  byHandSync,
  leasesSync,
];
const ASYNC: readonly QueueKind[] = [
  fastqAsync,
  fastqAsyncWithSet,
  asyncQueueAsync,
  pQueue,
  runAsync,
  byHandAsync,
];
const ALL_ASYNC: readonly QueueKind[] = [...ASYNC, fastqPromise, runWithRetries, leasesAsync];
/** A million jobs a second. */
const MOST_NS = 1_000;

interface Setting {
  readonly name: string;
  readonly note?: string;
  readonly kinds: readonly QueueKind[];
  readonly concurrency: number;
  /** The keys of a burst. */
  readonly keys: () => readonly string[];
}

const SETTINGS: readonly Setting[] = [
  { name: 'the worker returns', kinds: SYNC, concurrency: 1, keys: sameKeys },
  { name: 'the worker is async', kinds: ALL_ASYNC, concurrency: 1, keys: sameKeys },
  { name: 'the worker is async, 10 at once', kinds: ASYNC, concurrency: 10, keys: sameKeys },
  {
    name: 'the worker is async, every key is a new string',
    note: 'Timed is also the making of the strings. Equal ones are compared character by character where there is a map.',
    kinds: ASYNC,
    concurrency: 1,
    keys: () => newKeys(DISTINCT),
  },
];

function sameKeys(): readonly string[] {
  return keysUpTo(DISTINCT);
}

function burstCase({ name, note, kinds, concurrency, keys }: Setting): BulkCase {
  return {
    kind: 'bulk',
    name: `bursts of 10 000 jobs with keys of their own: ${name}`,
    ...(note === undefined ? {} : { note }),
    size: { full: 500_000, quick: 10_000, of: 'jobs' },
    contestants: contest(kinds, (open) => (size: number): BulkRun => {
      const jobs = new Jobs();
      const queue = open(jobs, concurrency);
      const bursts = Math.max(Math.round(size / DISTINCT), 1);
      return {
        run: async () => {
          for (let burst = 0; burst < bursts; burst++) {
            const burstKeys = keys();
            const allDone = jobs.expect(burstKeys);
            queue.addAll(burstKeys);
            await allDone;
          }
          return bursts * DISTINCT;
        },
        check: () => jobs.check(),
        close: () => {
          queue.close();
        },
      };
    }),
    targets: targetsOf(kinds),
  };
}

function targetsOf(kinds: readonly QueueKind[]): Target[] {
  return kinds
    .filter((kind) => kind === runSync || kind === runAsync)
    .flatMap(({ name }): Target[] => [
      { kind: 'limit', contestant: name, metric: TIME, atMost: MOST_NS },
      { kind: 'ratio', contestant: name, metric: TIME, atLeast: 1 },
    ]);
}

export const burstCases: readonly BulkCase[] = SETTINGS.map(burstCase);
