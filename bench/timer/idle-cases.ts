/** Idle timers: one that is due in an hour, or a million that were all cancelled. How often is the process woken? */
import { performance } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import { SystemTimer, systemClock, type Clock } from 'escapement';
import { TimerWheel } from 'timer-wheel';
import { cpuUsSince } from '../lib/machine.ts';
import { scenario, type Scenario } from '../lib/kinds.ts';
import { aside, atMost, contest, metric, ours, rival, US_PER_MS } from '../lib/part.ts';
import type { Contestant, Measurement } from '../lib/part.ts';
import { DelaySequence } from '../lib/random.ts';
import { HeapTimer } from './heap-timer.ts';
import { openHeap, openHost, openTasks, openWheel, type RequestWheel, type WaitingRing } from './kinds.ts';

const HOUR_MS = 3_600_000;
/** How often timer-wheel is advanced. */
const WHEEL_ADVANCE_MS = 1_000;
/** How long an idle process is watched; a smaller ring is watched for less. */
const LONGEST_WATCH_MS = 2_000;
const CANCELLED_PER_WATCHED_MS = 250;

const CPU = 'cpu';
const WAKEUPS = 'wake-ups';
const LOOP_TURNS = 'loop turns';
const OURS = 'ours: TimerTask';

/** A ring of idle requests, with the number of its wake-ups, if it can be counted. */
interface Idler {
  readonly ring?: WaitingRing;
  readonly wakeups?: () => number;
  readonly close?: () => void;
}

type OpenIdler = (size: number, delays: DelaySequence) => Idler;

function idleHeap(size: number, delays: DelaySequence): Idler {
  const timer = new HeapTimer(() => performance.now(), true);
  return { ring: openHeap(size, delays, timer), wakeups: () => timer.wakeups };
}

/** On the host's clock, whose callbacks are counted. */
function idleOurs(size: number, delays: DelaySequence): Idler {
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
}

/** timer-wheel has no wake-up of its own: its user must call `advance`, whether anything is pending or not. */
function idleWheel(size: number, delays: DelaySequence): Idler {
  const wheel: RequestWheel = new TimerWheel();
  let wakeups = 0;
  const interval = setInterval(() => {
    wakeups++;
    wheel.advance();
  }, WHEEL_ADVANCE_MS);
  return {
    ring: openWheel(size, delays, wheel),
    wakeups: () => wakeups,
    close: () => clearInterval(interval),
  };
}

const IDLERS: readonly Contestant<OpenIdler>[] = [
  rival('nothing at all', () => ({ wakeups: () => 0 })),
  rival('setTimeout', (size, delays) => ({ ring: openHost(size, delays) })),
  rival('binary heap', idleHeap),
  rival('timer-wheel', idleWheel),
  ours(OURS, idleOurs),
];

async function watch({ ring, wakeups, close }: Idler, watchMs: number): Promise<Measurement> {
  // The turn of the preparation must end before anything is counted.
  await sleep(1);
  const cpuBefore = process.cpuUsage();
  const turnsBefore = loopTurns();
  const wakeupsBefore = wakeups?.() ?? 0;
  await sleep(watchMs);
  const turns = loopTurns() - turnsBefore;
  const cpuMs = cpuUsSince(cpuBefore) / US_PER_MS;
  const counted = wakeups === undefined ? {} : { [WAKEUPS]: wakeups() - wakeupsBefore };
  const problem = ring?.check();
  ring?.close();
  close?.();
  return { values: { ...counted, [LOOP_TURNS]: turns, [CPU]: cpuMs }, problem };
}

/** Turns of the event loop so far; `NaN` before Node 20.18, which does not count them. */
function loopTurns(): number {
  const { uvMetricsInfo } = performance.nodeTiming as { uvMetricsInfo?: { loopCount: number } };
  return uvMetricsInfo?.loopCount ?? Number.NaN;
}

function watchOne(open: OpenIdler): Scenario {
  return (watchMs) => {
    const idler = open(1, new DelaySequence(HOUR_MS, HOUR_MS));
    idler.ring?.fill();
    return watch(idler, watchMs);
  };
}

/** Their deadlines are within the time that is watched. */
function watchCancelled(open: OpenIdler): Scenario {
  return (count) => {
    const watchMs = Math.min(LONGEST_WATCH_MS, count / CANCELLED_PER_WATCHED_MS);
    const idler = open(count, new DelaySequence(Math.ceil(watchMs / 4), Math.ceil(watchMs * 0.9)));
    idler.ring?.fill();
    idler.ring?.cancelAll();
    return watch(idler, watchMs);
  };
}

const IDLE = {
  rounds: 1,
  note:
    'A wake-up is a callback of the host that the timer requested; work inside the host shows only in the turns of the ' +
    'event loop, one or two of which belong to the measurement. timer-wheel must be advanced from outside, idle or not.',
  metrics: [metric(WAKEUPS), aside(LOOP_TURNS), aside(CPU, 'ms')],
  targets: [atMost(OURS, WAKEUPS, 0)],
};

export const idleCases = [
  scenario({
    ...IDLE,
    name: 'idle: one timer due in an hour',
    size: { full: 2_000, quick: 400, of: 'ms watched' },
    contestants: contest(IDLERS, watchOne),
  }),
  scenario({
    ...IDLE,
    name: 'idle: all cancelled',
    size: { full: 1_000_000, quick: 100_000, of: 'timers' },
    contestants: contest(IDLERS, watchCancelled),
  }),
];
