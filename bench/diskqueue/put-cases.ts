/** Puts, durable and not, of many callers and of one. */
import { performance } from 'node:perf_hooks';
import type { ScenarioCase, ScenarioOutcome } from '../lib/part.ts';
import { quantileOfSorted } from '../lib/statistics.ts';
import type { Target } from '../lib/target.ts';
import { putAll } from './callers.ts';
import { rawSynced, rawUnsynced, writeStream, writeStreamUnsynced } from './file-stores.ts';
import { levelSynced, levelSyncedBatched, levelUnsynced, levelUnsyncedBatched } from './level-stores.ts';
import { lmdbSynced, lmdbUnsynced } from './lmdb-stores.ts';
import { contest, withStore, type OpenStore, type StoreKind } from './message-store.ts';
import { OrderCheck } from './messages.ts';
import { oursAlways, oursOs } from './our-stores.ts';

const DURABLE: readonly StoreKind[] = [
  rawSynced,
  writeStreamUnsynced,
  levelSynced,
  levelSyncedBatched,
  lmdbSynced,
  oursAlways,
];
const NOT_DURABLE: readonly StoreKind[] = [
  rawUnsynced,
  writeStream,
  levelUnsynced,
  levelUnsyncedBatched,
  lmdbUnsynced,
  oursOs,
];

const TIME = 'time';
const US_PER_MS = 1_000;
/** Puts before those that count, as a share of them. */
const WARM_UP_SHARE = 0.1;
/** 300 000 puts a second. */
const MOST_US = 3.33;
const LEAST_OF_RAW = 0.6;

async function play(
  open: OpenStore,
  folder: string,
  size: number,
  callers: number,
): Promise<ScenarioOutcome> {
  const warmUp = Math.ceil(size * WARM_UP_SHARE);
  const latenciesMs = new Float64Array(size);
  return withStore(open, folder, async (store) => {
    await putAll(store, 0, warmUp, callers);
    const before = process.cpuUsage();
    const startMs = performance.now();
    await putAll(store, warmUp, warmUp + size, callers, latenciesMs);
    const elapsedMs = performance.now() - startMs;
    const { user, system } = process.cpuUsage(before);
    const check = new OrderCheck(warmUp + size);
    await store.take(warmUp + size, check.see);
    return {
      values: {
        [TIME]: (elapsedMs * US_PER_MS) / size,
        cpu: (user + system) / size,
        p99: quantileOfSorted(latenciesMs.sort(), 0.99) * US_PER_MS,
      },
      problem: check.problem(),
    };
  });
}

interface Setting {
  readonly name: string;
  readonly note?: string;
  readonly kinds: readonly StoreKind[];
  readonly callers: number;
  readonly size: { readonly full: number; readonly quick: number };
  readonly rounds?: number;
  readonly targets?: readonly Target[];
}

const SETTINGS: readonly Setting[] = [
  {
    name: 'put, durable: 64 callers',
    note: 'Each caller waits for its put before the next one. p99 is what one put takes.',
    kinds: DURABLE,
    callers: 64,
    size: { full: 30_000, quick: 1_000 },
    targets: [{ kind: 'ratio', contestant: 'ours', metric: TIME, atLeast: LEAST_OF_RAW }],
  },
  { name: 'put, durable: 1 caller', kinds: DURABLE, callers: 1, size: { full: 1_000, quick: 50 } },
  {
    name: 'put, not durable: 64 callers',
    note: 'Three files of the queue; whenever one is full it is synced, so that is in it. Not so with the others.',
    kinds: NOT_DURABLE,
    callers: 64,
    size: { full: 1_000_000, quick: 10_000 },
    rounds: 3,
    targets: [{ kind: 'limit', contestant: 'ours', metric: TIME, atMost: MOST_US }],
  },
  {
    name: 'put, not durable: 1 caller',
    kinds: NOT_DURABLE,
    callers: 1,
    size: { full: 30_000, quick: 1_000 },
  },
];

export const putCases: readonly ScenarioCase[] = SETTINGS.map(
  ({ name, note, kinds, callers, size, rounds, targets }) => ({
    kind: 'scenario',
    name,
    ...(note === undefined ? {} : { note }),
    ...(rounds === undefined ? {} : { rounds }),
    ...(targets === undefined ? {} : { targets }),
    size: { ...size, of: 'messages' },
    metrics: [
      { name: TIME, unit: 'µs/put' },
      { name: 'cpu', unit: 'µs/put' },
      { name: 'p99', unit: 'µs' },
    ],
    contestants: contest(kinds, (open, folder, count) => play(open, folder, count, callers)),
  }),
);
