/** The timer against the host's `setTimeout`, a binary heap, and the npm package timer-wheel. */
import type { BenchPart } from './lib/part.ts';
import { cascadeCase } from './timer/cascade-case.ts';
import { clockCase } from './timer/clock-case.ts';
import { expireCase } from './timer/expire-case.ts';
import { growthCase } from './timer/growth-case.ts';
import { idleCases } from './timer/idle-cases.ts';
import { realTimeCase } from './timer/real-time-case.ts';
import { sharedCallbackCase } from './timer/shared-callback-case.ts';
import { waitingCases } from './timer/waiting-cases.ts';

export const part: BenchPart = {
  title: 'millions of deadlines, most of them cancelled',
  remarks: [
    'Every operation includes the request object its user would have: an object that holds its timeout or its id; ' +
      'for TimerTask and the heap, the entry itself. Ours reads the clock once per add.',
    'binary heap: tinyqueue, one host timeout, cancelling sets a flag; rebuilt when more than half is dead.',
    'timer-wheel 1.0.0 does less: it wakes nobody and must be advanced by its user, expires up to 1.024 s late, ' +
      'cancels without saying whether there was anything to cancel, and does not know how many wait.',
  ],
  cases: [
    clockCase,
    ...waitingCases,
    sharedCallbackCase,
    expireCase,
    cascadeCase,
    growthCase,
    realTimeCase,
    ...idleCases,
  ],
};
