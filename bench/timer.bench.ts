/** The timer against the host's `setTimeout`, a binary heap, and the npm package timer-wheel. */
import type { BenchPart } from './lib/part.ts';
import { cascadeCase, clockCase } from './timer/clock-cases.ts';
import { catchUpCase, realTimeCase } from './timer/expiry-cases.ts';
import { growthCase, sharedCallbackCase, sizesCase } from './timer/fill-cases.ts';
import { idleCases } from './timer/idle-cases.ts';
import { TIMERS } from './timer/kinds.ts';
import { ringCases } from './timer/ring-cases.ts';

const WITH_DELAYS = { fewFixed: 1.2, fewSpread: 2.5, manyFixed: 2.5, manySpread: 5, random: 2, fill: 4 };
const WITH_DEADLINES = { fewFixed: 1.5, fewSpread: 4, manyFixed: 4, manySpread: 10, random: 2, fill: 4 };

export const part: BenchPart = {
  title: 'millions of deadlines, most of them cancelled',
  remarks: [
    'Every operation includes the request object of a user: an object that holds its timeout or its id; for TimerTask ' +
      'and the heap, the entry itself. Ours reads the clock once per add; with a deadline, the program reads it once a loop, ' +
      'as the host does once a turn.',
    'binary heap: tinyqueue with one host timeout; cancelling sets a flag; rebuilt when more than half of it is dead.',
    'timer-wheel 1.0.0 does less: it has no wake-up, so its user must advance it; it expires up to 1.024 s late; its ' +
      'cancel does not return whether there was anything to cancel; and it does not count pending requests.',
  ],
  cases: [
    clockCase,
    ...ringCases(TIMERS, {
      'ours: TimerTask': WITH_DELAYS,
      'ours: schedule': WITH_DELAYS,
      'ours: TimerTask, deadline': WITH_DEADLINES,
      'ours: scheduleAt': WITH_DEADLINES,
    }),
    sharedCallbackCase,
    catchUpCase,
    cascadeCase,
    growthCase,
    sizesCase,
    realTimeCase,
    ...idleCases,
  ],
};
