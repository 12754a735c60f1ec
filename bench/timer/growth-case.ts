/** Growing to ten million: does the process stand still while the tables do? */
import { performance } from 'node:perf_hooks';
import { SystemTimer } from 'escapement';
import type { BulkCase, BulkRun } from '../lib/part.ts';
import { quantileOfSorted } from '../lib/statistics.ts';
import { DelaySequence } from './delay-sequence.ts';
import { HeapEntry, HeapTimer } from './heap-timer.ts';
import { checkWaiting } from './waiting-set.ts';

/** An hour or so: nothing falls due, and several levels of wheels are in use. */
const MIN_DELAY_MS = 60_000;
const MAX_DELAY_MS = 4_000_000;
/** Adds between two looks at the clock: few enough that a stall is one chunk's, enough that the look is free. */
const CHUNK = 64;
const LONGEST_STALL = 'longest stall';
const RARE_STALL = 'p99.99 stall';
const MOST_MS = 20;

let fired = 0;

function expire(argument: number): void {
  fired += argument < 0 ? 0 : 1;
}

class GrowthEntry extends HeapEntry {
  declare readonly argument: number;

  constructor(argument: number) {
    super();
    this.argument = argument;
  }

  expire(): void {
    expire(this.argument);
  }
}

/** Times every chunk of adds. */
class StallMeter {
  readonly #chunkMs: Float64Array;

  constructor(size: number) {
    this.#chunkMs = new Float64Array(Math.ceil(size / CHUNK));
  }

  fill(size: number, addChunk: (from: number, to: number) => void): number {
    let startMs = performance.now();
    for (let chunk = 0; chunk < this.#chunkMs.length; chunk++) {
      addChunk(chunk * CHUNK, Math.min((chunk + 1) * CHUNK, size));
      const endMs = performance.now();
      this.#chunkMs[chunk] = endMs - startMs;
      startMs = endMs;
    }
    return size;
  }

  details(): Record<string, number> {
    const sorted = this.#chunkMs.toSorted();
    return { [LONGEST_STALL]: quantileOfSorted(sorted, 1), [RARE_STALL]: quantileOfSorted(sorted, 0.9999) };
  }
}

function openOurs(size: number): BulkRun {
  fired = 0;
  const timer = new SystemTimer();
  const delays = new DelaySequence(MIN_DELAY_MS, MAX_DELAY_MS);
  const meter = new StallMeter(size);
  const addChunk = (from: number, to: number): void => {
    for (let index = from; index < to; index++) timer.schedule(delays.next(), expire, index);
  };
  return {
    run: () => meter.fill(size, addChunk),
    check: () => checkWaiting(timer.size, size, fired),
    close: () => {
      timer.close();
    },
    details: () => meter.details(),
  };
}

function openHeap(size: number): BulkRun {
  fired = 0;
  const timer = new HeapTimer(() => performance.now(), true);
  const delays = new DelaySequence(MIN_DELAY_MS, MAX_DELAY_MS);
  const meter = new StallMeter(size);
  const addChunk = (from: number, to: number): void => {
    for (let index = from; index < to; index++) timer.add(new GrowthEntry(index), delays.next());
  };
  return {
    run: () => meter.fill(size, addChunk),
    check: () => checkWaiting(timer.size, size, fired),
    close: () => {
      timer.close();
    },
    details: () => meter.details(),
  };
}

export const growthCase: BulkCase = {
  kind: 'bulk',
  name: 'growth: schedule until ten million wait',
  note:
    `A stall is the longest that ${CHUNK} adds in a row took, pauses of the collector included; the last column ` +
    'tells how long those were by themselves. Which adds they hit is the machine’s business.',
  size: { full: 10_000_000, quick: 1_000_000, of: 'timers' },
  rounds: 3,
  measuresBytes: true,
  measuresPauses: true,
  details: [
    { name: LONGEST_STALL, unit: 'ms' },
    { name: RARE_STALL, unit: 'ms' },
  ],
  contestants: [
    {
      name: 'setTimeout',
      role: 'rival',
      open: {
        cannot: 'at some 260 bytes each its timers would take 2.6 GB, more heap than many hosts allow',
      },
    },
    { name: 'binary heap', role: 'baseline', open: openHeap },
    { name: 'ours: schedule', role: 'ours', open: openOurs },
  ],
  targets: [{ kind: 'limit', contestant: 'ours: schedule', metric: LONGEST_STALL, atMost: MOST_MS }],
};
