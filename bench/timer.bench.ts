/** The timer against the host's `setTimeout`, a binary heap, and the npm package timer-wheel. */
import { bulk, micro, scenario } from './lib/kinds.ts';
import { aside, atLeast, atMost, atMostAbove, BYTES, metric, NO_SIZE, TIME } from './lib/part.ts';
import type { BenchPart, Target } from './lib/part.ts';
import { ringRows } from './timer/ring-rows.ts';

const WITH_DELAYS = { fewFixed: 1.2, fewSpread: 2.5, manyFixed: 2.5, manySpread: 5, random: 2, fill: 4 };
const WITH_DEADLINES = { fewFixed: 1.5, fewSpread: 4, manyFixed: 4, manySpread: 10, random: 2, fill: 4 };

const clock = () => import('./timer/clock.ts');
const expiry = () => import('./timer/expiry.ts');
const fill = () => import('./timer/fill.ts');
const kinds = () => import('./timer/kinds.ts');

const MILLION = { full: 1_000_000, quick: 20_000, of: 'timers' };

/** Never early, none lost, at most two milliseconds later than the host's p99, and no more CPU time. */
function realTimeTargets(contestant: string): Target[] {
  return [
    atMost(contestant, 'early', 0),
    atMost(contestant, 'lost', 0),
    atMostAbove(contestant, 'p99 lateness', 2),
    atLeast(contestant, 'cpu', 1),
  ];
}

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
    micro({
      name: 'one reading of the clock',
      note:
        'Every add of ours contains one. The host reads no clock per timer: it uses the time of the event loop turn, which ' +
        'does not advance during a long turn.',
      size: NO_SIZE,
      contestants: async () => (await clock()).readings,
    }),
    ...ringRows(
      async () => (await kinds()).TIMERS,
      {
        'ours: TimerTask': WITH_DELAYS,
        'ours: schedule': WITH_DELAYS,
        'ours: TimerTask, deadline': WITH_DEADLINES,
        'ours: scheduleAt': WITH_DEADLINES,
      },
      { 'ours: TimerTask': 100 },
    ),
    bulk({
      name: 'fill with one shared callback: no object per timer, delays 5–65 s',
      note: 'Handles and ids are stored in an array allocated beforehand, so the bytes are those of the timers alone.',
      size: MILLION,
      measuresBytes: true,
      contestants: async () => (await fill()).sharedCallback,
      targets: [
        atLeast('ours: schedule', TIME, 8),
        atMost('ours: schedule', BYTES, 40),
        atLeast('ours: scheduleAt', TIME, 12),
      ],
    }),
    bulk({
      name: 'expire all in one catch-up pump, delays 5–65 s',
      note: 'timer-wheel returns due requests bucket by bucket, not in order of time within the 1.024 s of a bucket.',
      size: MILLION,
      contestants: async () => (await expiry()).catchUp,
      targets: [atMost('ours: TimerTask', TIME, 300), atMost('ours: schedule', TIME, 300)],
    }),
    scenario({
      name: 'a full bucket of a coarse wheel comes down',
      note:
        'No task runs: the entries only move to finer wheels. With maxTasksPerTurn: Infinity one turn moves all of them; ' +
        'otherwise a turn moves 65 536, and other work runs between turns.',
      size: { full: 3_000_000, quick: 100_000, of: 'timers' },
      rounds: 3,
      metrics: [metric('longest hold', 'ms'), aside('all turns', 'ms'), aside('turns')],
      contestants: async () => (await clock()).cascade,
      targets: [atLeast('ours: bounded turns', 'longest hold', 1)],
    }),
    bulk({
      name: 'growth: schedule until ten million wait',
      note:
        'A stall is the longest time that 64 consecutive adds took, pauses of the collector included; the last column ' +
        'has the longest pause alone. Which adds a pause hits depends on the machine.',
      size: { full: 10_000_000, quick: 100_000, of: 'timers' },
      rounds: 3,
      measuresBytes: true,
      measuresPauses: true,
      details: [metric('longest stall', 'ms'), metric('p99.99 stall', 'ms')],
      contestants: async () => (await fill()).growth,
      targets: [atMost('ours: schedule', 'longest stall', 20)],
    }),
    scenario({
      name: 'size: cancel + scheduleAt, from a thousand to ten million waiting',
      note: 'Without an object of the user: what grows is the timer, and an array of ids. A smoke run has fewer waiting.',
      size: { full: 10_000_000, quick: 20_000, of: 'timers at most' },
      metrics: [metric('oldest', 'ns/op'), metric('random', 'ns/op')],
      contestants: async () => (await fill()).sizes,
    }),
    scenario({
      name: 'real time: ten timeouts a millisecond',
      note:
        'All are added at once, due over the following ten seconds. CPU is the whole process: user, system, collector. ' +
        'Early: the host counts from the start of the turn of the event loop, in whole milliseconds. timer-wheel is ' +
        'advanced once a second, as its documentation advises; its buckets are 1.024 s wide, and when only part of one is ' +
        'due, version 1.0.0 loses entries of the rest.',
      size: { full: 100_000, quick: 10_000, of: 'timers' },
      rounds: 2,
      metrics: [
        metric('cpu', 'ms'),
        metric('p50 lateness', 'ms'),
        metric('p99 lateness', 'ms'),
        aside('max lateness', 'ms'),
        metric('early'),
        metric('lost'),
      ],
      contestants: async () => (await expiry()).realTime,
      targets: [...realTimeTargets('ours: TimerTask'), ...realTimeTargets('ours: schedule')],
    }),
  ],
};
