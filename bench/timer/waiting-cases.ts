/** Cases over a set that waits: replace the oldest, replace a random one, one alone, fill a million. */
import type { BulkCase, BulkRun, MicroCase, MicroRun } from '../lib/part.ts';
import { BYTES, TIME } from '../lib/measurement.ts';
import type { Target } from '../lib/target.ts';
import { DelaySequence, RandomPlaces } from './delay-sequence.ts';
import { heapTimers } from './heap-waiting-set.ts';
import { hostTimers } from './host-waiting-set.ts';
import { packageTimers } from './package-waiting-set.ts';
import { scheduledTimers } from './schedule-waiting-set.ts';
import { taskTimers } from './task-waiting-set.ts';
import { contest, type TimerKind, type WaitingSet } from './waiting-set.ts';

const KINDS: readonly TimerKind[] = [hostTimers, heapTimers, packageTimers, taskTimers, scheduledTimers];

/** The delay of a case in milliseconds: one for all requests, or spread over a range. */
interface DelayRange {
  readonly minMs: number;
  readonly maxMs: number;
  readonly label: string;
}

const FIXED: DelayRange = { minMs: 30_000, maxMs: 30_000, label: 'one fixed delay (30 s)' };
const SPREAD: DelayRange = { minMs: 1_000, maxMs: 31_000, label: 'delays 1–31 s' };
const WIDE: DelayRange = { minMs: 5_000, maxMs: 65_000, label: 'delays 5–65 s' };

function sequenceOf({ minMs, maxMs }: DelayRange): DelaySequence {
  return new DelaySequence(minMs, maxMs);
}

/** Both forms of ours must reach it. */
function ratioTargets(atLeast: number): Target[] {
  return [taskTimers, scheduledTimers].map(({ name }) => ({
    kind: 'ratio',
    contestant: name,
    metric: TIME,
    atLeast,
  }));
}

/** A set with everything waiting, and one loop of it to measure. */
function microRun(set: WaitingSet, run: (count: number) => void): MicroRun {
  return {
    run,
    check: () => set.check(),
    close: () => {
      set.close();
    },
  };
}

function replaceOldest(size: number, sizeLabel: string, delays: DelayRange, atLeast: number): MicroCase {
  return {
    kind: 'micro',
    name: `cancel the oldest + add one: ${sizeLabel} waiting, ${delays.label}`,
    size: { full: size, quick: size, of: 'timers' },
    contestants: contest(KINDS, (kind) => (count: number) => {
      const set = kind.open(count, sequenceOf(delays));
      set.fill();
      return microRun(set, (operations) => {
        set.replaceOldest(operations);
      });
    }),
    targets: ratioTargets(atLeast),
  };
}

const replaceOldestCases: readonly MicroCase[] = [
  replaceOldest(5_000, '5 000', FIXED, 1.2),
  replaceOldest(5_000, '5 000', SPREAD, 2.5),
  replaceOldest(100_000, '100 000', FIXED, 2.5),
  replaceOldest(100_000, '100 000', SPREAD, 5),
];

const replaceRandomCase: MicroCase = {
  kind: 'micro',
  name: `cancel a random one + add one: many waiting, ${WIDE.label}`,
  size: { full: 1_000_000, quick: 100_000, of: 'timers' },
  rounds: 4,
  contestants: contest(KINDS, (kind) => (count: number) => {
    const places = new RandomPlaces(count);
    const set = kind.open(count, sequenceOf(WIDE));
    set.fill();
    return microRun(set, (operations) => {
      set.replaceRandom(operations, places);
    });
  }),
  targets: ratioTargets(2),
};

const aloneCase: MicroCase = {
  kind: 'micro',
  name: `add one + cancel it: nothing else waiting, ${SPREAD.label}`,
  note:
    'A timer that has emptied disarms its wake-up at once, so each operation arms and disarms a host timeout: ours is ' +
    'at least as dear as the host here, by design. The heap leaves its timeout armed and is woken for nothing.',
  size: { full: 1, quick: 1, of: '' },
  contestants: contest(KINDS, (kind) => (count: number) => {
    const set = kind.open(count, sequenceOf(SPREAD));
    return microRun(set, (operations) => {
      set.addAndCancel(operations);
    });
  }),
};

const fillCase: BulkCase = {
  kind: 'bulk',
  name: `fill: add a request each, ${WIDE.label}`,
  size: { full: 1_000_000, quick: 100_000, of: 'timers' },
  measuresBytes: true,
  contestants: contest(KINDS, (kind) => (count: number): BulkRun => {
    const set = kind.open(count, sequenceOf(WIDE));
    return {
      run: () => {
        set.fill();
        return count;
      },
      check: () => set.check(),
      close: () => {
        set.close();
      },
    };
  }),
  targets: [...ratioTargets(4), { kind: 'limit', contestant: taskTimers.name, metric: BYTES, atMost: 100 }],
};

export const waitingCases: readonly (MicroCase | BulkCase)[] = [
  // From small to large: what a large set teaches V8 about the lifetime of objects, it does not forget.
  aloneCase,
  ...replaceOldestCases,
  replaceRandomCase,
  fillCase,
];
