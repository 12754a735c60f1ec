/** One operation from watch to completion, many that expire at once, the promise form, one key with many watchers, and the harness. */
import { DelayedOperationPurgatory } from 'escapement';
import { runOf, type OpenBulk, type OpenMicro, type Scenario } from '../lib/kinds.ts';
import { baseline, contest, expectCount, MIB, ours, type Contestant } from '../lib/part.ts';
import { SeededRandom } from '../lib/random.ts';
import { blockUntilDue } from '../lib/work.ts';
import { runHarness } from './harness.ts';
import { NaivePurgatory, type NaiveCondition } from './naive-purgatory.ts';
import { Crowd, KEYS_PER_OPERATION, LONG_MS, RequestTally } from './operations.ts';
import type { CompleteBy, Purgatory } from './operations.ts';
import { PURGATORIES, WITHOUT_KAFKA, type PurgatoryKind } from './purgatories.ts';
import { prepareWorkload, type Workload } from './workload.ts';

/** @param ringSize - number of pending operations that complete and are replaced; the others stay. */
export function operations(completeBy: CompleteBy, ringSize: number): Contestant<OpenMicro>[] {
  return contest(WITHOUT_KAFKA, (kind) => (size) => {
    const waiting = kind.openWaiting(size, ringSize);
    return runOf(waiting, (count: number) => waiting.replaceOldest(count, completeBy));
  });
}

/** Nothing is due while operations are being added. */
const OPERATIONS_PER_MS = 100;
const KEYS = 1_000;
const SEED = 7;

/** Adds operations and blocks until all are due. The run is their completion, in turns of the event loop. */
export const expiry = contest<PurgatoryKind, OpenBulk>(
  WITHOUT_KAFKA,
  ({ newPurgatory, classes }) =>
    (size) => {
      const purgatory = newPurgatory();
      const tally = new RequestTally(size);
      const delayMs = Math.ceil(size / OPERATIONS_PER_MS);
      const random = new SeededRandom(SEED);
      for (let id = 0; id < size; id++) {
        const keys = Array.from({ length: KEYS_PER_OPERATION }, () => `topic-${random.nextInt(KEYS)}`);
        purgatory.tryCompleteElseWatch(new classes.Request(id, Infinity, delayMs, tally), keys);
      }
      blockUntilDue(delayMs);
      return {
        run: () => tally.finished,
        check: () => tally.check() ?? expectCount(purgatory.watched, 0, 'watch entries'),
        close: () => purgatory.close(),
      };
    },
);

const WAIT_KEYS = ['topic-0', 'topic-1', 'topic-2'] as const;
const OTHER_KEY = 'topic-3';
const VALUE = 7;
const OPTIONS = { timeoutMs: LONG_MS };

interface WaitingPurgatory extends Omit<Purgatory, 'tryCompleteElseWatch'> {
  wait(
    keys: readonly string[],
    condition: NaiveCondition<number>,
    options: { readonly timeoutMs: number },
  ): Promise<number>;
}

/** Waits once. */
type Wait = (purgatory: WaitingPurgatory) => Promise<number>;

const answer = Promise.resolve(VALUE);

const WAITS = {
  atOnce: (purgatory) => purgatory.wait(WAIT_KEYS, () => VALUE, OPTIONS),
  byPromise: (purgatory) => purgatory.wait(WAIT_KEYS, () => answer, OPTIONS),
  afterCheck: (purgatory) => {
    const place: { value: number | undefined } = { value: undefined };
    const waiting = purgatory.wait(WAIT_KEYS, () => place.value, OPTIONS);
    place.value = VALUE;
    purgatory.checkAndComplete(WAIT_KEYS[0]);
    return waiting;
  },
} satisfies Record<string, Wait>;

function openWaits(make: () => WaitingPurgatory, wait: Wait): OpenBulk {
  return (size) => {
    const purgatory = make();
    let sum = 0;
    // One operation is always pending, or each wait of ours would arm the host timeout and disarm it.
    purgatory.wait([OTHER_KEY], () => undefined, OPTIONS).catch(() => undefined);
    return {
      run: async () => {
        for (let done = 0; done < size; done++) sum += await wait(purgatory);
      },
      check: () =>
        expectCount(sum, size * VALUE, 'is the sum of the values') ??
        expectCount(purgatory.watched, 1, 'watch entries'),
      close: () => purgatory.close(),
    };
  };
}

export function waits(way: keyof typeof WAITS): Contestant<OpenBulk>[] {
  return [
    baseline(
      'setTimeout + Map',
      openWaits(() => new NaivePurgatory(), WAITS[way]),
    ),
    ours(
      'ours',
      openWaits(() => new DelayedOperationPurgatory<string>('bench'), WAITS[way]),
    ),
  ];
}

const CROWDED_KEY = 'topic-0';
/** Calls of `tryComplete` in the timed section, for every number of watchers: enough to time, in a smoke run too. */
const TRIES = 2_000_000;

/** Checks a key that many watch; each check completes one of them, spread over the list of the key. */
export const crowdedKey = contest<PurgatoryKind, OpenBulk>(
  PURGATORIES,
  ({ newPurgatory, classes }) =>
    (size) => {
      const purgatory = newPurgatory();
      const crowd = new Crowd();
      for (let id = 0; id < size; id++) {
        purgatory.tryCompleteElseWatch(new classes.Watcher(id, crowd), [CROWDED_KEY]);
      }
      crowd.tries = 0;
      const checks = Math.min(Math.ceil(TRIES / size), size);
      const stride = Math.floor(size / checks);
      let returned = 0;
      const due = checks * size - (checks * (checks - 1)) / 2; // one watcher fewer in each check
      return {
        run: () => {
          for (let check = 0; check < checks; check++) {
            crowd.readyId = check * stride;
            returned += purgatory.checkAndComplete(CROWDED_KEY);
          }
        },
        items: () => crowd.tries,
        check: () =>
          expectCount(crowd.completed, checks, 'watchers completed') ??
          expectCount(returned, checks, 'completions returned') ??
          expectCount(purgatory.watched, size - checks, 'watch entries') ??
          expectCount(crowd.tries, due, 'conditions were tried') ??
          expectCount(crowd.expired, 0, 'watchers expired'),
        close: () => purgatory.close(),
      };
    },
);

/** Kafka's harness, at the rate and with the timeout and keys that Kafka has published. */
export function harness(pct50Ms: number, pct75Ms: number): Contestant<Scenario>[] {
  const options = { ratePerS: 100_000, timeoutMs: 200, pct50Ms, pct75Ms, keys: 3, keySpaceSize: 100 };
  let workload: Workload | undefined; // drawn once, for all contestants
  return contest(PURGATORIES, (kind) => async (num) => {
    workload ??= prepareWorkload({ ...options, num });
    const result = await runHarness(workload, kind);
    return {
      values: {
        cpu: result.cpuMs,
        'rate reached': result.actualRatePerS,
        shortfall: Math.max(0, 1 - result.actualRatePerS / result.targetRatePerS) * 100,
        'p99 loop delay': result.loopDelayP99Ms,
        'peak heap': result.peakHeapBytes / MIB,
        'dead entries': result.deadEntries,
        expired: result.expiredShare * 100,
        'off theory': Math.abs(result.expiredShare - result.expiredInTheory) * 100,
      },
      problem: result.problem,
    };
  });
}
