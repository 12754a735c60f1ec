/** `setTimeout` and `clearTimeout` of `escapement/timers` against the host's: the request timeouts of part `timer`, and TanStack Query. */
import { micro } from './lib/kinds.ts';
import type { BenchPart } from './lib/part.ts';
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

export const part: BenchPart = {
  title: 'replacements of the functions of node:timers',
  remarks: [
    'Every operation includes the request object that holds its timeout, the timeout, and its async context. With spread ' +
      'delays ours must not be slower; with one delay for all, the host only appends to a list.',
  ],
  cases: [
    ...ringRows(async () => (await import('./timer/kinds.ts')).DROP_IN, { 'ours: setTimeout': FLOORS }),
    micro({
      name: 'TanStack Query: new data for one of ten thousand queries, stale after 1–31 s',
      note: 'Each clears a timeout and sets one. Without timeouts: what the library itself takes.',
      size: { full: 10_000, quick: 1_000, of: 'queries' },
      contestants: async () => (await import('./timer/query.ts')).updates,
    }),
  ],
};
