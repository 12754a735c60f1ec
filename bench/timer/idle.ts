/** Idle timers: one that is due in an hour, or a million that were all cancelled. How often is the process woken? */
import { performance } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import { SystemTimer, systemClock, type Clock } from 'escapement';
import type { Scenario } from '../lib/kinds.ts';
import { spentBy } from '../lib/machine.ts';
import { contest, HOUR_MS, ours, rival, US_PER_MS, type Contestant, type Measurement } from '../lib/part.ts';
import { DelaySequence } from '../lib/random.ts';
import { HEAP, openHeap, openHost, openTasks, openWheel, WHEEL } from './kinds.ts';
import type { Ring } from './ring.ts';

/** How often timer-wheel is advanced. */
const WHEEL_ADVANCE_MS = 1_000;
/** How long an idle process is watched; a smaller ring is watched for less. */
const LONGEST_WATCH_MS = 2_000;
const CANCELLED_PER_WATCHED_MS = 250;

/** A ring of idle requests, with the number of its wake-ups, if it can be counted. */
interface Idler {
  readonly ring?: Ring;
  readonly wakeups?: () => number;
  readonly close?: () => void;
}

type OpenIdler = (size: number, delays: DelaySequence) => Idler;

const idleHeap: OpenIdler = (size, delays) => {
  const timer = HEAP.open();
  return { ring: openHeap(size, delays, timer), wakeups: () => timer.wakeups };
};

/** On the host's clock, whose callbacks are counted. */
const idleOurs: OpenIdler = (size, delays) => {
  let wakeups = 0;
  const clock: Clock = {
    now: () => systemClock.now(),
    wallNow: () => systemClock.wallNow(),
    setTimeout: (callback, delayMs) =>
      systemClock.setTimeout(() => {
        wakeups++;
        callback();
      }, delayMs),
  };
  return { ring: openTasks(size, delays, new SystemTimer({ clock })), wakeups: () => wakeups };
};

/** timer-wheel has no wake-up of its own: its user must call `advance`, whether anything is pending or not. */
const idleWheel: OpenIdler = (size, delays) => {
  const wheel = WHEEL.open();
  let wakeups = 0;
  const interval = setInterval(() => {
    wakeups++;
    wheel.advance();
  }, WHEEL_ADVANCE_MS);
  const ring = openWheel(size, delays, wheel);
  return { ring, wakeups: () => wakeups, close: () => clearInterval(interval) };
};

const IDLERS: readonly Contestant<OpenIdler>[] = [
  rival('nothing at all', () => ({ wakeups: () => 0 })),
  rival('setTimeout', (size, delays) => ({ ring: openHost(size, delays) })),
  rival('binary heap', idleHeap),
  rival('timer-wheel', idleWheel),
  ours('ours: TimerTask', idleOurs),
];

async function watch({ ring, wakeups, close }: Idler, watchMs: number): Promise<Measurement> {
  // The turn of the preparation must end before anything is counted.
  await sleep(1);
  const turnsBefore = loopTurns();
  const wakeupsBefore = wakeups?.() ?? 0;
  const { cpuUs } = await spentBy(() => sleep(watchMs));
  const turns = loopTurns() - turnsBefore;
  const counted = wakeups === undefined ? {} : { 'wake-ups': wakeups() - wakeupsBefore };
  const problem = ring?.check();
  ring?.close();
  close?.();
  return { values: { ...counted, 'loop turns': turns, cpu: cpuUs / US_PER_MS }, problem };
}

/** Turns of the event loop so far; `NaN` before Node 20.18, which does not count them. */
function loopTurns(): number {
  const { uvMetricsInfo } = performance.nodeTiming as { uvMetricsInfo?: { loopCount: number } };
  return uvMetricsInfo?.loopCount ?? Number.NaN;
}

export const oneIdle: readonly Contestant<Scenario>[] = contest(IDLERS, (open) => (watchMs) => {
  const idler = open(1, new DelaySequence(HOUR_MS, HOUR_MS));
  idler.ring?.fill();
  return watch(idler, watchMs);
});

/** Their deadlines are within the time that is watched. */
export const allCancelled: readonly Contestant<Scenario>[] = contest(IDLERS, (open) => (count) => {
  const watchMs = Math.min(LONGEST_WATCH_MS, count / CANCELLED_PER_WATCHED_MS);
  const idler = open(count, new DelaySequence(Math.ceil(watchMs / 4), Math.ceil(watchMs * 0.9)));
  idler.ring?.fill();
  idler.ring?.cancelAll();
  return watch(idler, watchMs);
});
