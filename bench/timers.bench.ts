/** `setTimeout` and `clearTimeout` of `escapement/timers` against the host's: the request timeouts of part `timer`, and TanStack Query. */
import type { BenchPart } from './lib/part.ts';
import { DROP_IN } from './timer/kinds.ts';
import { ringCases } from './timer/ring-cases.ts';
import { queryCase } from './timers/query-case.ts';

/** At most 1.3 times the host's time. */
const ALMOST = 0.77;

export const part: BenchPart = {
  title: 'replacements of the functions of node:timers',
  remarks: [
    'Every operation includes the request object that holds its timeout, the timeout, and its async context. With spread ' +
      'delays ours must not be slower; with one delay for all, the host only appends to a list.',
  ],
  cases: [
    ...ringCases(DROP_IN, {
      'ours: setTimeout': {
        alone: 1,
        fewFixed: ALMOST,
        fewSpread: 1,
        manyFixed: ALMOST,
        manySpread: 1,
        random: 1,
        fill: 1,
      },
    }),
    queryCase,
  ],
};
