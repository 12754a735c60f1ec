/** `setTimeout` and `clearTimeout` of `escapement/timers` against the host's: the request timeouts of part `timer`, and TanStack Query. */
import { micro, scenario } from './lib/kinds.ts';
import { metric } from './lib/part.ts';
import type { BenchCase, BenchPart } from './lib/part.ts';
import { ringRows } from './timer/ring-rows.ts';

/** At most 1.3 times the host's time. */
const ALMOST = 0.77;
const FLOORS = {
  alone: 1,
  fewSpread: 1,
  manySpread: 1,
  random: 1,
  fill: 1,
  fewFixed: ALMOST,
  manyFixed: ALMOST,
};

/** Timeouts that are not cleared. */
const fireAll = (delays: string, minMs: number, maxMs: number): BenchCase =>
  scenario({
    name: `set, all fire, ${delays}`,
    note: 'CPU of the whole process for each timeout. Ours runs each callback in an immediate of the host; schedule runs all in one turn.',
    size: { full: 100_000, quick: 10_000, of: 'timers' },
    metrics: [metric('cpu', 'us/item')],
    contestants: async () => (await import('./timer/expiry.ts')).fireAll(minMs, maxMs),
  });

export const part: BenchPart = {
  title: 'replacements of the functions of node:timers',
  remarks: [
    'Every operation includes the request object that holds its timeout, the timeout, and its async context. Where timeouts are ' +
      'cleared and delays are spread, ours must not be slower; with one delay for all, the host only appends to a list.',
  ],
  cases: [
    ...ringRows(async () => (await import('./timer/kinds.ts')).DROP_IN, { 'ours: setTimeout': FLOORS }),
    fireAll('delays 1–1000 ms', 1, 1_000),
    fireAll('one delay (500 ms)', 500, 500),
    micro({
      name: 'TanStack Query: new data for one of ten thousand queries, stale after 1–31 s',
      note: 'Each clears a timeout and sets one. Without timeouts: what the library itself takes.',
      size: { full: 10_000, quick: 1_000, of: 'queries' },
      contestants: async () => (await import('./timer/query.ts')).updates,
    }),
  ],
};
