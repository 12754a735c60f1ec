/** One bucket of a coarse wheel falls due with all that waits: how long does a turn hold the event loop? */
import { performance } from 'node:perf_hooks';
import { SystemTimer, type Clock, type ClockTimeout } from 'escapement';
import type { ScenarioCase, ScenarioOutcome } from '../lib/part.ts';

/** The start of a bucket of the fourth wheel, which spans 262 144 ms. */
const COARSE_MS = 262_144;
/** After it, in milliseconds: nothing is due when the bucket is. */
const MIN_DELAY_MS = 100;
const SPREAD_MS = 4_000;
/** A prime, so that neighbours in memory expire far apart. */
const STRIDE = 7_919;

const HOLD = 'longest hold';
const TOTAL = 'all turns';
const TURNS = 'turns';
const OURS = 'ours: bounded turns';

/** Time stands still, and wake-ups come when they are called for: nothing else is measured. */
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

function openWith(maxTasksPerTurn: number): (size: number) => Promise<ScenarioOutcome> {
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
    const isWhole = early === 0 && timer.size === size;
    return Promise.resolve({ values, problem: isWhole ? undefined : `${early} ran early` });
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

export const cascadeCase: ScenarioCase = {
  kind: 'scenario',
  name: 'a full bucket of a coarse wheel comes down',
  note:
    'Nothing runs: the entries only move to finer wheels. With maxTasksPerTurn: Infinity one turn moves all of them; ' +
    'else a turn moves 65 536, and others have the event loop in between.',
  size: { full: 3_000_000, quick: 300_000, of: 'timers' },
  rounds: 3,
  metrics: [
    { name: HOLD, unit: 'ms' },
    { name: TOTAL, unit: 'ms', isAside: true },
    { name: TURNS, unit: '', isAside: true },
  ],
  contestants: [
    { name: 'one turn', role: 'baseline', open: openWith(Infinity) },
    { name: OURS, role: 'ours', open: openWith(10_000) },
  ],
  targets: [{ kind: 'ratio', contestant: OURS, metric: HOLD, atLeast: 1 }],
};
