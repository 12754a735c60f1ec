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

/** How many times as fast as the host ours must be at least; undefined: not judged. */
export interface Floors {
  readonly alone?: number;
  readonly fewFixed?: number;
  readonly fewSpread?: number;
  readonly manyFixed?: number;
  readonly manySpread?: number;
  readonly random?: number;
  readonly fill?: number;
}

const FLOORS: Floors = { fewFixed: 1.2, fewSpread: 2.5, manyFixed: 2.5, manySpread: 5, random: 2, fill: 4 };

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

/** Every form of ours must reach it. */
function ratioTargets(kinds: readonly TimerKind[], atLeast: number | undefined): Target[] {
  if (atLeast === undefined) return [];
  return kinds
    .filter(({ role }) => role === 'ours')
    .map(({ name }) => ({ kind: 'ratio', contestant: name, metric: TIME, atLeast }));
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

function replaceOldest(
  kinds: readonly TimerKind[],
  size: number,
  delays: DelayRange,
  atLeast: number | undefined,
): MicroCase {
  return {
    kind: 'micro',
    name: `cancel the oldest + add one: ${size.toLocaleString('en').replace(',', ' ')} waiting, ${delays.label}`,
    size: { full: size, quick: size, of: 'timers' },
    contestants: contest(kinds, (kind) => (count: number) => {
      const set = kind.open(count, sequenceOf(delays));
      set.fill();
      return microRun(set, (operations) => {
        set.replaceOldest(operations);
      });
    }),
    targets: ratioTargets(kinds, atLeast),
  };
}

function replaceRandom(kinds: readonly TimerKind[], atLeast: number | undefined): MicroCase {
  return {
    kind: 'micro',
    name: `cancel a random one + add one: many waiting, ${WIDE.label}`,
    size: { full: 1_000_000, quick: 100_000, of: 'timers' },
    rounds: 4,
    contestants: contest(kinds, (kind) => (count: number) => {
      const places = new RandomPlaces(count);
      const set = kind.open(count, sequenceOf(WIDE));
      set.fill();
      return microRun(set, (operations) => {
        set.replaceRandom(operations, places);
      });
    }),
    targets: ratioTargets(kinds, atLeast),
  };
}

function alone(kinds: readonly TimerKind[], atLeast: number | undefined): MicroCase {
  return {
    kind: 'micro',
    name: `add one + cancel it: nothing else waiting, ${SPREAD.label}`,
    note:
      'All in one turn of the event loop. Ours tells the host at the end of the turn, and only of what still waits; the ' +
      'heap leaves its timeout armed and is woken for nothing.',
    size: { full: 1, quick: 1, of: '' },
    contestants: contest(kinds, (kind) => (count: number) => {
      const set = kind.open(count, sequenceOf(SPREAD));
      return microRun(set, (operations) => {
        set.addAndCancel(operations);
      });
    }),
    targets: ratioTargets(kinds, atLeast),
  };
}

function fill(kinds: readonly TimerKind[], atLeast: number | undefined): BulkCase {
  return {
    kind: 'bulk',
    name: `fill: add a request each, ${WIDE.label}`,
    size: { full: 1_000_000, quick: 100_000, of: 'timers' },
    measuresBytes: true,
    contestants: contest(kinds, (kind) => (count: number): BulkRun => {
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
    targets: [
      ...ratioTargets(kinds, atLeast),
      ...kinds
        .filter((kind) => kind === taskTimers)
        .map(({ name }): Target => ({ kind: 'limit', contestant: name, metric: BYTES, atMost: 100 })),
    ],
  };
}

/** From small to large: what a large set teaches V8 about the lifetime of objects, it does not forget. */
export function waitingCasesOf(kinds: readonly TimerKind[], floors: Floors): (MicroCase | BulkCase)[] {
  return [
    alone(kinds, floors.alone),
    replaceOldest(kinds, 5_000, FIXED, floors.fewFixed),
    replaceOldest(kinds, 5_000, SPREAD, floors.fewSpread),
    replaceOldest(kinds, 100_000, FIXED, floors.manyFixed),
    replaceOldest(kinds, 100_000, SPREAD, floors.manySpread),
    replaceRandom(kinds, floors.random),
    fill(kinds, floors.fill),
  ];
}

export const waitingCases: readonly (MicroCase | BulkCase)[] = waitingCasesOf(KINDS, FLOORS);
