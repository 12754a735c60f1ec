/** The cost of one reading of the clock, and how long a turn holds the event loop when a bucket of a coarse wheel is due. */
import { performance } from 'node:perf_hooks';
import { SystemTimer, systemClock, type Clock, type ClockTimeout } from 'escapement';
import { micro, scenario, type MicroRun, type Scenario } from '../lib/kinds.ts';
import { aside, atLeast, baseline, metric, NO_SIZE, ours, rival } from '../lib/part.ts';

/** The sum keeps the readings alive, and shows that they were taken. */
interface Readings {
  sum: number;
  last: number;
}

function readings(loop: (readings: Readings, count: number) => void): () => MicroRun {
  return () => {
    const all = { sum: 0, last: 0 };
    return {
      run: (count) => loop(all, count),
      check: () => (all.sum > 0 && all.last > 0 ? undefined : 'the clock was not read'),
    };
  };
}

const readPerformance = readings((all, count) => {
  for (let done = 0; done < count; done++) all.sum += all.last = performance.now();
});

const readDate = readings((all, count) => {
  for (let done = 0; done < count; done++) all.sum += all.last = Date.now();
});

const readSystemClock = readings((all, count) => {
  for (let done = 0; done < count; done++) all.sum += all.last = systemClock.now();
});

export const clockCase = micro({
  name: 'one reading of the clock',
  note:
    'Every add of ours contains one. The host reads no clock per timer: it uses the time of the event loop turn, which ' +
    'does not advance during a long turn.',
  size: NO_SIZE,
  contestants: [
    baseline('performance.now()', readPerformance),
    rival('Date.now()', readDate),
    ours('ours: systemClock', readSystemClock),
  ],
});

/** The start of a bucket of the fourth wheel, which spans 262 144 ms. */
const COARSE_MS = 262_144;
/** Deadlines after that start: no timer is due when the bucket is. */
const MIN_DELAY_MS = 100;
const SPREAD_MS = 4_000;
/** A prime, so that neighbours in memory expire far apart. */
const STRIDE = 7_919;

const HOLD = 'longest hold';
const TOTAL = 'all turns';
const TURNS = 'turns';
const OURS = 'ours: bounded turns';

/** A clock that stands still and calls no wake-up: the case calls them and times each call. */
class StepClock implements Clock {
  nowMs = 0;
  wake: (() => void) | undefined;

  now(): number {
    return this.nowMs;
  }

  wallNow(): number {
    return this.nowMs;
  }

  setTimeout(callback: () => void): ClockTimeout {
    this.wake = callback;
    const cancel = (): void => {
      if (this.wake === callback) this.wake = undefined;
    };
    return { cancel, ref: () => undefined, unref: () => undefined };
  }
}

function cascade(maxTasksPerTurn: number): Scenario {
  return (size) => {
    const clock = new StepClock();
    using timer = new SystemTimer({ clock, maxTasksPerTurn });
    let early = 0;
    const run = (): void => {
      early++;
    };
    for (let i = 0; i < size; i++) {
      timer.schedule(COARSE_MS + MIN_DELAY_MS + ((i * STRIDE) % SPREAD_MS), run, undefined);
    }
    clock.nowMs = COARSE_MS;
    const holdsMs = turnsOf(clock, timer);
    const values = {
      [HOLD]: Math.max(...holdsMs),
      [TOTAL]: holdsMs.reduce((sum, each) => sum + each, 0),
      [TURNS]: holdsMs.length,
    };
    const isComplete = early === 0 && timer.size === size;
    return Promise.resolve({ values, problem: isComplete ? undefined : `${early} timers ran early` });
  };
}

/** Wakes the timer until nothing is due. @returns how long each turn took, in milliseconds. */
function turnsOf(clock: StepClock, timer: SystemTimer): number[] {
  const holdsMs: number[] = [];
  while ((timer.nextExpirationMs() ?? Infinity) <= clock.nowMs) {
    const { wake } = clock;
    clock.wake = undefined;
    const startMs = performance.now();
    wake?.();
    holdsMs.push(performance.now() - startMs);
  }
  return holdsMs;
}

export const cascadeCase = scenario({
  name: 'a full bucket of a coarse wheel comes down',
  note:
    'No task runs: the entries only move to finer wheels. With maxTasksPerTurn: Infinity one turn moves all of them; ' +
    'otherwise a turn moves 65 536, and other work runs between turns.',
  size: { full: 3_000_000, quick: 300_000, of: 'timers' },
  rounds: 3,
  metrics: [metric(HOLD, 'ms'), aside(TOTAL, 'ms'), aside(TURNS)],
  contestants: [baseline('one turn', cascade(Infinity)), ours(OURS, cascade(10_000))],
  targets: [atLeast(OURS, HOLD, 1)],
});
