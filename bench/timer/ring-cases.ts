/** Cases over a ring of pending requests: one alone, replace the oldest, replace a random one, fill a million. */
import { atLeast, atMost, BYTES, contest, NO_SIZE, TIME } from '../lib/part.ts';
import type { BenchCase, BulkCase, Contestant, MicroCase, MicroRun } from '../lib/part.ts';
import { DelaySequence, RandomPlaces } from '../lib/random.ts';
import type { Target } from '../lib/result.ts';
import type { OpenRing, WaitingRing } from './kinds.ts';

type Kinds = readonly Contestant<OpenRing>[];

/** How many times as fast as the host ours must be; a case without a number has no target. */
export interface Floors {
  readonly alone?: number;
  readonly fewFixed?: number;
  readonly fewSpread?: number;
  readonly manyFixed?: number;
  readonly manySpread?: number;
  readonly random?: number;
  readonly fill?: number;
}

/** One delay for all requests, or delays spread over a range. */
interface DelayRange {
  readonly minMs: number;
  readonly maxMs: number;
  readonly label: string;
}

const FIXED: DelayRange = { minMs: 30_000, maxMs: 30_000, label: 'one fixed delay (30 s)' };
const SPREAD: DelayRange = { minMs: 1_000, maxMs: 31_000, label: 'delays 1–31 s' };
const WIDE: DelayRange = { minMs: 5_000, maxMs: 65_000, label: 'delays 5–65 s' };
const MILLION = { full: 1_000_000, quick: 100_000, of: 'timers' };
const MOST_BYTES = 100;

/** A floor holds for every contestant of ours. */
function ratioTargets(kinds: Kinds, floor: number | undefined): Target[] {
  if (floor === undefined) return [];
  return kinds.filter(({ role }) => role === 'ours').map(({ name }) => atLeast(name, TIME, floor));
}

function newSequence({ minMs, maxMs }: DelayRange): DelaySequence {
  return new DelaySequence(minMs, maxMs);
}

function microRun(ring: WaitingRing, run: (count: number) => void): MicroRun {
  const close = (): void => {
    ring.close();
  };
  return { run, check: () => ring.check(), close };
}

function replaceOldest(kinds: Kinds, size: number, delays: DelayRange, floor: number | undefined): MicroCase {
  return {
    kind: 'micro',
    name: `cancel the oldest + add one: ${size.toLocaleString('en').replace(',', ' ')} waiting, ${delays.label}`,
    size: { full: size, quick: size, of: 'timers' },
    contestants: contest(kinds, (open) => (count: number) => {
      const ring = open(count, newSequence(delays));
      ring.fill();
      return microRun(ring, (operations) => {
        ring.replaceOldest(operations);
      });
    }),
    targets: ratioTargets(kinds, floor),
  };
}

function replaceRandom(kinds: Kinds, floor: number | undefined): MicroCase {
  return {
    kind: 'micro',
    name: `cancel a random one + add one: many waiting, ${WIDE.label}`,
    size: MILLION,
    rounds: 4,
    contestants: contest(kinds, (open) => (count: number) => {
      const places = new RandomPlaces(count);
      const ring = open(count, newSequence(WIDE));
      ring.fill();
      return microRun(ring, (operations) => {
        ring.replaceRandom(operations, places);
      });
    }),
    targets: ratioTargets(kinds, floor),
  };
}

function alone(kinds: Kinds, floor: number | undefined): MicroCase {
  return {
    kind: 'micro',
    name: `add one + cancel it: nothing else waiting, ${SPREAD.label}`,
    note:
      'All in one turn of the event loop. Ours sets the host timeout at the end of the turn, if a timer is still pending; ' +
      'the heap leaves its timeout armed and is woken in vain.',
    size: NO_SIZE,
    contestants: contest(kinds, (open) => (count: number) => {
      const ring = open(count, newSequence(SPREAD));
      return microRun(ring, (operations) => {
        ring.addAndCancel(operations);
      });
    }),
    targets: ratioTargets(kinds, floor),
  };
}

function fill(kinds: Kinds, floor: number | undefined): BulkCase {
  const hasTasks = kinds.some(({ name }) => name === 'ours: TimerTask');
  return {
    kind: 'bulk',
    name: `fill: add a request each, ${WIDE.label}`,
    size: MILLION,
    measuresBytes: true,
    contestants: contest(kinds, (open) => (count: number) => {
      const ring = open(count, newSequence(WIDE));
      return {
        run: () => {
          ring.fill();
          return count;
        },
        check: () => ring.check(),
        close: () => {
          ring.close();
        },
      };
    }),
    targets: [
      ...ratioTargets(kinds, floor),
      ...(hasTasks ? [atMost('ours: TimerTask', BYTES, MOST_BYTES)] : []),
    ],
  };
}

/** From small to large, because V8 does not forget what a large ring teaches it about the lifetime of objects. */
export function ringCases(kinds: Kinds, floors: Floors): BenchCase[] {
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
