/** `setTimeout` and `clearTimeout` of `escapement/timers` against the host's: the request timeouts of part `timer`. */
import type { BenchPart } from './lib/part.ts';
import { dropInTimers } from './timer/drop-in-waiting-set.ts';
import { hostTimers } from './timer/host-waiting-set.ts';
import { waitingCasesOf } from './timer/waiting-cases.ts';

export const part: BenchPart = {
  title: 'the functions of node:timers, replaced',
  remarks: [
    'Every operation includes the request object that holds its timeout, the timeout, and its async context. With spread ' +
      'delays ours must not be slower; with one delay for all the host has but to append to a list.',
  ],
  cases: waitingCasesOf([hostTimers, dropInTimers], {
    alone: 1,
    fewSpread: 1,
    manySpread: 1,
    random: 1,
    fill: 1,
  }),
};
