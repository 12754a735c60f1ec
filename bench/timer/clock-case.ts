/** What one look at the clock costs: every operation of ours contains one. */
import { performance } from 'node:perf_hooks';
import { systemClock } from 'escapement';
import type { MicroCase, MicroRun } from '../lib/part.ts';

/** The sum keeps the readings alive, and shows afterwards that they were taken. */
class Readings {
  sum = 0;
  last = 0;

  asRun(run: (count: number) => void): MicroRun {
    return {
      run,
      check: () => (this.sum > 0 && this.last > 0 ? undefined : 'the clock was not read'),
      close: () => undefined,
    };
  }
}

function readPerformance(): MicroRun {
  const readings = new Readings();
  return readings.asRun((count) => {
    for (let done = 0; done < count; done++) readings.sum += readings.last = performance.now();
  });
}

function readDate(): MicroRun {
  const readings = new Readings();
  return readings.asRun((count) => {
    for (let done = 0; done < count; done++) readings.sum += readings.last = Date.now();
  });
}

function readSystemClock(): MicroRun {
  const readings = new Readings();
  return readings.asRun((count) => {
    for (let done = 0; done < count; done++) readings.sum += readings.last = systemClock.now();
  });
}

export const clockCase: MicroCase = {
  kind: 'micro',
  name: 'one reading of the clock',
  note: 'The host reads none per timer: it takes the time of the event loop turn, which stands still in a long turn.',
  size: { full: 1, quick: 1, of: '' },
  contestants: [
    { name: 'performance.now()', role: 'baseline', open: readPerformance },
    { name: 'Date.now()', role: 'rival', open: readDate },
    { name: 'ours: systemClock', role: 'ours', open: readSystemClock },
  ],
};
