/** One operation from watch to completion, many that expire at once, the promise form, and one key with many watchers. */
import { performance } from 'node:perf_hooks';
import { DelayedOperationPurgatory } from 'escapement';
import { bulk, micro, runOf, type BulkRun } from '../lib/kinds.ts';
import { atMost, baseline, contest, expectCount, ours, TIME } from '../lib/part.ts';
import type { BenchCase, Size } from '../lib/part.ts';
import { SeededRandom } from '../lib/random.ts';
import { NaivePurgatory, type NaiveCondition } from './naive-purgatory.ts';
import { Crowd, KEYS_PER_OPERATION, LONG_MS, Tally, type Purgatory } from './operations.ts';
import { PURGATORIES, WITHOUT_KAFKA, type PurgatoryKind } from './purgatories.ts';
import type { CompleteBy } from './workload.ts';

const MOST_NS = 1_500;

/** @param ringSize - number of pending operations that complete and are replaced; the others stay. */
function operationCase(
  name: string,
  size: Size,
  completeBy: CompleteBy,
  ringSize: number,
  note?: string,
): BenchCase {
  return micro({
    name: `tryCompleteElseWatch on 3 keys + ${name}`,
    note,
    size,
    contestants: contest(WITHOUT_KAFKA, (kind) => (count: number) => {
      const ring = kind.openRing(count, ringSize);
      return runOf(ring, (times: number) => ring.replaceOldest(times, completeBy));
    }),
    targets: [atMost('ours', TIME, MOST_NS)],
  });
}

const A_FEW = 10;
const FEW = { full: A_FEW, quick: A_FEW, of: 'waiting' };
const MANY = { full: 100_000, quick: 10_000, of: 'waiting' };
const HOT_NOTE =
  'The same keys are added and removed again and again. A Map of V8 keeps deleted keys in its chains until it is ' +
  'rehashed, which is rare for a large one: deleting an empty key and adding it again makes later lookups slower.';
const COLD_NOTE =
  'The keys, lists and neighbours of every operation have not been used for a hundred thousand operations: they are ' +
  'out of the caches, and in the old generation of the heap.';

export const operationCases = [
  operationCase('checkAndComplete: few waiting', FEW, 'check', A_FEW),
  operationCase('forceComplete: few waiting', FEW, 'force', A_FEW),
  operationCase('checkAndComplete: many waiting, a few of them come and go', MANY, 'check', A_FEW, HOT_NOTE),
  operationCase('checkAndComplete: many waiting, always the oldest goes', MANY, 'check', Infinity, COLD_NOTE),
];

/** Nothing is due while operations are being added. */
const OPERATIONS_PER_MS = 100;
/** Clock and timer count in milliseconds, and one of them rounds up. */
const SPARE_MS = 2;
const KEYS = 1_000;
const SEED = 7;

/** Adds operations and blocks until all are due. The run is their completion, in turns of the event loop. */
function openExpiry({ newPurgatory, classes }: PurgatoryKind): (size: number) => BulkRun {
  return (size) => {
    const purgatory = newPurgatory();
    const tally = new Tally(size);
    const delayMs = Math.ceil(size / OPERATIONS_PER_MS);
    const random = new SeededRandom(SEED);
    for (let id = 0; id < size; id++) {
      const keys = Array.from({ length: KEYS_PER_OPERATION }, () => `topic-${random.nextInt(KEYS)}`);
      purgatory.tryCompleteElseWatch(new classes.Timeout(id, tally, delayMs), keys);
    }
    const dueAtMs = performance.now() + delayMs + SPARE_MS;
    while (performance.now() < dueAtMs);
    return {
      run: () =>
        new Promise<void>((resolve) => {
          tally.onAllDone = resolve;
        }),
      check: () => tally.check() ?? expectCount(purgatory.watched, 0, 'watch entries'),
      close: () => purgatory.close(),
    };
  };
}

export const expiryCase = bulk({
  name: 'expire: all at once, 3 keys each out of a thousand',
  note:
    'They become due while the program is busy; timed is from there until the last has expired. Ours expires them in ' +
    'order, 10 000 in a turn of the event loop; the host all in one turn.',
  size: { full: 100_000, quick: 10_000, of: 'operations' },
  contestants: contest(WITHOUT_KAFKA, openExpiry),
});

const WAIT_KEYS = ['topic-0', 'topic-1', 'topic-2'] as const;
const OTHER_KEY = 'topic-3';
const VALUE = 7;

interface WaitingPurgatory extends Omit<Purgatory, 'tryCompleteElseWatch'> {
  wait(
    keys: readonly string[],
    condition: NaiveCondition<number>,
    options: { readonly timeoutMs: number },
  ): Promise<number>;
}

type Repeat = (purgatory: WaitingPurgatory, times: number) => Promise<number>;

const OPTIONS = { timeoutMs: LONG_MS };

async function atOnce(purgatory: WaitingPurgatory, times: number): Promise<number> {
  let sum = 0;
  for (let done = 0; done < times; done++) sum += await purgatory.wait(WAIT_KEYS, () => VALUE, OPTIONS);
  return sum;
}

async function byPromise(purgatory: WaitingPurgatory, times: number): Promise<number> {
  const answer = Promise.resolve(VALUE);
  let sum = 0;
  for (let done = 0; done < times; done++) sum += await purgatory.wait(WAIT_KEYS, () => answer, OPTIONS);
  return sum;
}

async function afterTrigger(purgatory: WaitingPurgatory, times: number): Promise<number> {
  let sum = 0;
  for (let done = 0; done < times; done++) {
    const place: { value: number | undefined } = { value: undefined };
    const waiting = purgatory.wait(WAIT_KEYS, () => place.value, OPTIONS);
    place.value = VALUE;
    purgatory.checkAndComplete(WAIT_KEYS[0]);
    sum += await waiting;
  }
  return sum;
}

function openWaits(make: () => WaitingPurgatory, repeat: Repeat): (size: number) => BulkRun {
  return (size) => {
    const purgatory = make();
    let sum = 0;
    // One operation is always pending, or each wait of ours would arm the host timeout and disarm it.
    purgatory.wait([OTHER_KEY], () => undefined, OPTIONS).catch(() => undefined);
    return {
      run: async () => {
        sum = await repeat(purgatory, size);
      },
      check: () => {
        if (sum !== size * VALUE) return `the values add up to ${sum}, not to ${size * VALUE}`;
        return expectCount(purgatory.watched, 1, 'watch entries');
      },
      close: () => purgatory.close(),
    };
  };
}

function waitCase(name: string, repeat: Repeat): BenchCase {
  return bulk({
    name: `wait on 3 keys: ${name}`,
    size: { full: 200_000, quick: 20_000, of: 'waits' },
    contestants: [
      baseline(
        'setTimeout + Map',
        openWaits(() => new NaivePurgatory(), repeat),
      ),
      ours(
        'ours',
        openWaits(() => new DelayedOperationPurgatory<string>('bench'), repeat),
      ),
    ],
  });
}

export const waitCases = [
  waitCase('the condition holds', atOnce),
  waitCase('the condition is a resolved promise', byPromise),
  waitCase('the condition holds after a check', afterTrigger),
];

const CROWDED_KEY = 'topic-0';
/** Calls of `tryComplete` in the timed section, for every number of watchers: enough to time, in a smoke run too. */
const TRIES = 2_000_000;

function openCrowd({ newPurgatory, classes }: PurgatoryKind): (size: number) => BulkRun {
  return (size) => {
    const purgatory = newPurgatory();
    const crowd = new Crowd();
    for (let id = 0; id < size; id++) {
      purgatory.tryCompleteElseWatch(new classes.Watcher(id, crowd), [CROWDED_KEY]);
    }
    crowd.tries = 0;
    // The operations that complete are spread over the list of the key.
    const checks = Math.min(Math.ceil(TRIES / size), size);
    const stride = Math.floor(size / checks);
    return {
      run: () => {
        for (; crowd.checks < checks; crowd.checks++) {
          crowd.readyId = crowd.checks * stride;
          crowd.returned += purgatory.checkAndComplete(CROWDED_KEY);
        }
      },
      items: () => crowd.tries,
      check: () => crowd.check(purgatory.watched, size),
      close: () => purgatory.close(),
    };
  };
}

function crowdedKey(size: number, label: string): BenchCase {
  return bulk({
    name: `one key, ${label} wait for it: a check that completes one of them, per watcher`,
    note: 'A check tries all of them. Its cost is linear if this is the same for ten times as many, apart from caches.',
    size: { full: size, quick: Math.ceil(size / 10), of: 'watchers' },
    contestants: contest(PURGATORIES, openCrowd),
  });
}

export const crowdedKeyCases = [crowdedKey(10_000, '10 000'), crowdedKey(100_000, '100 000')];
