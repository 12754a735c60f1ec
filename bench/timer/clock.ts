/** The cost of one reading of the clock, and how long a turn holds the event loop when a bucket of a coarse wheel is due. */
import { performance } from 'node:perf_hooks';
import { SystemTimer, systemClock, type Clock } from 'escapement';
import type { OpenMicro, Scenario } from '../lib/kinds.ts';
import { baseline, ours } from '../lib/part.ts';

/** The sum keeps the readings alive, and shows that they were taken. @param loop - returns the sum of its readings. */
function reading(loop: (count: number) => number): OpenMicro {
  return () => {
    let sum = 0;
    return {
      run: (count) => {
        sum += loop(count);
      },
      check: () => (sum > 0 ? undefined : 'the clock was not read'),
    };
  };
}

const performanceNow = reading((count) => {
  let sum = 0;
  for (let done = 0; done < count; done++) sum += performance.now();
  return sum;
});

const systemNow = reading((count) => {
  let sum = 0;
  for (let done = 0; done < count; done++) sum += systemClock.now();
  return sum;
});

export const readings = [baseline('performance.now()', performanceNow), ours('ours: systemClock', systemNow)];

/** The start of a bucket of the fourth wheel, which spans 262 144 ms. */
const COARSE_MS = 262_144;
/** Deadlines after that start: no timer is due when the bucket is. */
const MIN_DELAY_MS = 100;
const SPREAD_MS = 4_000;
/** A prime, so that neighbours in memory expire far apart. */
const STRIDE = 7_919;

/** On a clock that stands still and calls no wake-up: the case calls them and times each call. */
function cascadeIn(maxTasksPerTurn: number): Scenario {
  return (size) => {
    let nowMs = 0;
    let wake: (() => void) | undefined;
    const clock: Clock = {
      now: () => nowMs,
      wallNow: () => nowMs,
      setTimeout: (callback) => {
        wake = callback;
        const cancel = (): void => {
          if (wake === callback) wake = undefined;
        };
        return { cancel, ref: () => undefined, unref: () => undefined };
      },
    };
    using timer = new SystemTimer({ clock, maxTasksPerTurn });
    let early = 0;
    const run = (): void => {
      early++;
    };
    for (let i = 0; i < size; i++) {
      timer.schedule(COARSE_MS + MIN_DELAY_MS + ((i * STRIDE) % SPREAD_MS), run, undefined);
    }
    nowMs = COARSE_MS;
    const holdsMs: number[] = [];
    while ((timer.nextExpirationMs() ?? Infinity) <= nowMs) {
      const turn = wake;
      wake = undefined;
      const startMs = performance.now();
      turn?.();
      holdsMs.push(performance.now() - startMs);
    }
    const isComplete = early === 0 && timer.size === size;
    return Promise.resolve({
      values: {
        'longest hold': Math.max(...holdsMs),
        'all turns': holdsMs.reduce((sum, each) => sum + each, 0),
        turns: holdsMs.length,
      },
      problem: isComplete ? undefined : `${early} timers ran early`,
    });
  };
}

export const cascade = [
  baseline('one turn', cascadeIn(Infinity)),
  ours('ours: bounded turns', cascadeIn(10_000)),
];
