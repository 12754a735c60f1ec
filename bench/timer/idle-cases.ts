/** Doing nothing: one timer that is far away, or a million that were all cancelled. Who is woken, and for what? */
import { performance } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import type { ScenarioCase, ScenarioOutcome } from '../lib/part.ts';
import { DelaySequence } from './delay-sequence.ts';
import {
  cancelledOnHeap,
  cancelledOnHost,
  cancelledOnOurs,
  cancelledOnPackage,
  nothing,
  oneOnHeap,
  oneOnHost,
  oneOnOurs,
  oneOnPackage,
  type Idler,
} from './idlers.ts';

/** How long idleness is watched; a smaller set is watched for less. */
const LONGEST_WATCH_MS = 2_000;
const CANCELLED_PER_WATCHED_MS = 250;

const CPU = 'cpu';
const WAKEUPS = 'wake-ups';
const LOOP_TURNS = 'loop turns';
const OURS = 'ours: TimerTask';

type Open = (size: number) => Promise<ScenarioOutcome>;

/** Due while we watch, had they not been cancelled. */
function delaysWithin(watchMs: number): DelaySequence {
  return new DelaySequence(Math.ceil(watchMs / 4), Math.ceil(watchMs * 0.9));
}

async function watch(idler: Idler, watchMs: number): Promise<ScenarioOutcome> {
  // The turn that the setting up was in must end before anything is counted.
  await sleep(1);
  const cpuBefore = process.cpuUsage();
  const turnsBefore = loopTurns();
  const wakeupsBefore = idler.wakeups?.() ?? 0;
  await sleep(watchMs);
  const turns = loopTurns() - turnsBefore;
  const { user, system } = process.cpuUsage(cpuBefore);
  const wakeups = idler.wakeups === undefined ? {} : { [WAKEUPS]: idler.wakeups() - wakeupsBefore };
  const problem = idler.check();
  idler.close();
  return {
    values: { ...wakeups, [LOOP_TURNS]: turns, [CPU]: (user + system) / 1_000 },
    problem,
  };
}

/** Turns of the event loop so far; `NaN` before Node 20.18, which does not count them. */
function loopTurns(): number {
  const { uvMetricsInfo } = performance.nodeTiming as { uvMetricsInfo?: { loopCount: number } };
  return uvMetricsInfo?.loopCount ?? Number.NaN;
}

function watchOne(idle: () => Idler): Open {
  return (watchMs) => watch(idle(), watchMs);
}

function watchCancelled(idle: (count: number, delays: DelaySequence) => Idler): Open {
  return (count) => {
    const watchMs = Math.min(LONGEST_WATCH_MS, count / CANCELLED_PER_WATCHED_MS);
    return watch(idle(count, delaysWithin(watchMs)), watchMs);
  };
}

const IDLE: Pick<ScenarioCase, 'kind' | 'rounds' | 'metrics' | 'targets' | 'note'> = {
  kind: 'scenario',
  rounds: 1,
  note:
    'A wake-up is a callback of the host’s that the timer asked for; what the host does inside shows only in the turns ' +
    'of the event loop, one or two of which are the watching itself. timer-wheel must be advanced from outside, idle or not.',
  metrics: [
    { name: WAKEUPS, unit: '' },
    { name: LOOP_TURNS, unit: '', isAside: true },
    { name: CPU, unit: 'ms', isAside: true },
  ],
  targets: [{ kind: 'limit', contestant: OURS, metric: WAKEUPS, atMost: 0 }],
};

export const idleCases: readonly ScenarioCase[] = [
  {
    ...IDLE,
    name: 'idle: one timer due in an hour',
    size: { full: 2_000, quick: 400, of: 'ms watched' },
    contestants: [
      { name: 'nothing at all', role: 'rival', open: watchOne(nothing) },
      { name: 'setTimeout', role: 'rival', open: watchOne(oneOnHost) },
      { name: 'binary heap', role: 'rival', open: watchOne(oneOnHeap) },
      { name: 'timer-wheel', role: 'rival', open: watchOne(oneOnPackage) },
      { name: OURS, role: 'ours', open: watchOne(oneOnOurs) },
    ],
  },
  {
    ...IDLE,
    name: 'idle: all cancelled',
    size: { full: 1_000_000, quick: 100_000, of: 'timers' },
    contestants: [
      { name: 'nothing at all', role: 'rival', open: watchCancelled(nothing) },
      { name: 'setTimeout', role: 'rival', open: watchCancelled(cancelledOnHost) },
      { name: 'binary heap', role: 'rival', open: watchCancelled(cancelledOnHeap) },
      { name: 'timer-wheel', role: 'rival', open: watchCancelled(cancelledOnPackage) },
      { name: OURS, role: 'ours', open: watchCancelled(cancelledOnOurs) },
    ],
  },
];
