/** Cases over a ring of pending requests: one alone, replace the oldest, replace a random one, fill a million. */
import { bulk, micro, runOf } from '../lib/kinds.ts';
import { atLeast, atMost, BYTES, contest, NO_SIZE, TIME } from '../lib/part.ts';
import type { BenchCase, Contestant } from '../lib/part.ts';
import { DelaySequence, SeededRandom } from '../lib/random.ts';
import type { Target } from '../lib/result.ts';
import type { OpenRing } from './kinds.ts';

type Kinds = readonly Contestant<OpenRing>[];

/** How many times as fast as the host one of ours must be; a case without a number has no target. */
export interface Floors {
  readonly alone?: number;
  readonly fewFixed?: number;
  readonly fewSpread?: number;
  readonly manyFixed?: number;
  readonly manySpread?: number;
  readonly random?: number;
  readonly fill?: number;
}

/** By the names of ours. */
type FloorsOf = Readonly<Record<string, Floors>>;

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

function ratioTargets(floors: FloorsOf, key: keyof Floors): Target[] {
  return Object.entries(floors).flatMap(([name, { [key]: floor }]) =>
    floor === undefined ? [] : [atLeast(name, TIME, floor)],
  );
}

function newSequence({ minMs, maxMs }: DelayRange): DelaySequence {
  return new DelaySequence(minMs, maxMs);
}

function replaceOldest(kinds: Kinds, size: number, delays: DelayRange, targets: Target[]): BenchCase {
  return micro({
    name: `cancel the oldest + add one: ${size.toLocaleString('en').replace(',', ' ')} waiting, ${delays.label}`,
    size: { full: size, quick: size, of: 'timers' },
    contestants: contest(kinds, (open) => (count: number) => {
      const ring = open(count, newSequence(delays));
      ring.fill();
      return runOf(ring, (operations: number) => ring.replaceOldest(operations));
    }),
    targets,
  });
}

function replaceRandom(kinds: Kinds, targets: Target[]): BenchCase {
  return micro({
    name: `cancel a random one + add one: many waiting, ${WIDE.label}`,
    size: MILLION,
    rounds: 4,
    contestants: contest(kinds, (open) => (count: number) => {
      const random = new SeededRandom();
      const ring = open(count, newSequence(WIDE));
      ring.fill();
      return runOf(ring, (operations: number) => ring.replaceRandom(operations, random));
    }),
    targets,
  });
}

function alone(kinds: Kinds, targets: Target[]): BenchCase {
  return micro({
    name: `add one + cancel it: nothing else waiting, ${SPREAD.label}`,
    note:
      'All in one turn of the event loop. Ours sets the host timeout at the end of the turn, if a timer is still pending; ' +
      'the heap leaves its timeout armed and is woken in vain.',
    size: NO_SIZE,
    contestants: contest(kinds, (open) => (count: number) => {
      const ring = open(count, newSequence(SPREAD));
      return runOf(ring, (operations: number) => ring.addAndCancel(operations));
    }),
    targets,
  });
}

function fill(kinds: Kinds, targets: Target[]): BenchCase {
  const hasTasks = kinds.some(({ name }) => name === 'ours: TimerTask');
  return bulk({
    name: `fill: add a request each, ${WIDE.label}`,
    size: MILLION,
    measuresBytes: true,
    contestants: contest(kinds, (open) => (count: number) => {
      const ring = open(count, newSequence(WIDE));
      return runOf(ring, () => ring.fill());
    }),
    targets: [...targets, ...(hasTasks ? [atMost('ours: TimerTask', BYTES, MOST_BYTES)] : [])],
  });
}

/** From small to large, because V8 does not forget what a large ring teaches it about the lifetime of objects. */
export function ringCases(kinds: Kinds, floors: FloorsOf): BenchCase[] {
  const targets = (key: keyof Floors): Target[] => ratioTargets(floors, key);
  return [
    alone(kinds, targets('alone')),
    replaceOldest(kinds, 5_000, FIXED, targets('fewFixed')),
    replaceOldest(kinds, 5_000, SPREAD, targets('fewSpread')),
    replaceOldest(kinds, 100_000, FIXED, targets('manyFixed')),
    replaceOldest(kinds, 100_000, SPREAD, targets('manySpread')),
    replaceRandom(kinds, targets('random')),
    fill(kinds, targets('fill')),
  ];
}
