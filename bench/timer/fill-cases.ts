/** Timers without an object of the user: a million with one shared callback, growth to ten million, and what growth costs. */
import { performance } from 'node:perf_hooks';
import { systemClock, SystemTimer, type TimerId } from 'escapement';
import { TimerWheel, type TimerHandle } from 'timer-wheel';
import { activeTimeouts } from '../lib/machine.ts';
import { bulk, scenario, type BulkRun, type Scenario } from '../lib/kinds.ts';
import { atLeast, atMost, baseline, BYTES, metric, NS_PER_MS } from '../lib/part.ts';
import { ours, rival, TIME, unable } from '../lib/part.ts';
import { DelaySequence, SeededRandom } from '../lib/random.ts';
import { quantileOfSorted } from '../lib/statistics.ts';
import { HeapEntry, HeapTimer } from './heap-timer.ts';
import { PAST_ALL_MS } from './kinds.ts';
import { checkPending, keepOne, newRing } from './ring.ts';

const OURS = 'ours: schedule';
const OURS_AT = 'ours: scheduleAt';
const FILL = { minMs: 5_000, maxMs: 65_000 };
/** An hour at most: nothing expires, and several levels of wheels are in use. */
const GROWTH = { minMs: 60_000, maxMs: 4_000_000 };

let expired = 0;

function expire(argument: number): void {
  expired += argument < 0 ? 0 : 1;
}

function newDelays({ minMs, maxMs }: { readonly minMs: number; readonly maxMs: number }): DelaySequence {
  expired = 0;
  return new DelaySequence(minMs, maxMs);
}

/** @param pending - counts the pending timers. @param close - releases them. */
function fillRun(size: number, fill: () => void, pending: () => number, close: () => void): BulkRun {
  return { run: fill, check: () => checkPending(pending(), size, expired), close };
}

/** Handles are kept, because timers that cannot be cancelled are of little use. */
function fillHost(size: number): BulkRun {
  const delays = newDelays(FILL);
  const handles = newRing<NodeJS.Timeout>(size);
  const foreign = activeTimeouts();
  const fill = (): void => {
    for (let index = 0; index < size; index++) handles[index] = setTimeout(expire, delays.next(), index);
  };
  return fillRun(
    size,
    fill,
    () => activeTimeouts() - foreign,
    () => {
      for (const handle of handles) clearTimeout(handle);
      keepOne(handles);
    },
  );
}

/** The entries of a heap must be objects. The callback that they share is their method. */
class ArgumentEntry extends HeapEntry {
  declare readonly argument: number;

  constructor(argument: number) {
    super();
    this.argument = argument;
  }

  expire(): void {
    expire(this.argument);
  }
}

function fillHeap(size: number): BulkRun {
  const delays = newDelays(FILL);
  const timer = new HeapTimer(() => performance.now(), true);
  const entries = newRing<ArgumentEntry>(size);
  const fill = (): void => {
    for (let index = 0; index < size; index++) {
      const entry = new ArgumentEntry(index);
      entries[index] = entry;
      timer.add(entry, delays.next());
    }
  };
  return fillRun(
    size,
    fill,
    () => timer.size,
    () => {
      timer.close();
      keepOne(entries);
    },
  );
}

function fillWheel(size: number): BulkRun {
  const delays = newDelays(FILL);
  const wheel = new TimerWheel<number>();
  const handles = newRing<TimerHandle>(size);
  const fill = (): void => {
    for (let index = 0; index < size; index++) handles[index] = wheel.schedule(index, delays.next());
  };
  return fillRun(
    size,
    fill,
    () => new Set(wheel.advance(PAST_ALL_MS)).size,
    () => keepOne(handles),
  );
}

type Fill = (timer: SystemTimer, ids: Float64Array, delays: DelaySequence) => void;

function fillOurs(fill: Fill): (size: number) => BulkRun {
  return (size) => {
    const delays = newDelays(FILL);
    const timer = new SystemTimer();
    const ids = new Float64Array(size);
    const run = fillRun(
      size,
      () => fill(timer, ids, delays),
      () => timer.size,
      () => void timer.close(),
    );
    return {
      ...run,
      check: () => (new Set(ids).size === size ? run.check() : 'two timers have the same id'),
    };
  };
}

const withDelays: Fill = (timer, ids, delays) => {
  for (let index = 0; index < ids.length; index++) ids[index] = timer.schedule(delays.next(), expire, index);
};

const withDeadlines: Fill = (timer, ids, delays) => {
  const nowMs = systemClock.now();
  for (let index = 0; index < ids.length; index++) {
    ids[index] = timer.scheduleAt(nowMs + delays.next(), expire, index);
  }
};

export const sharedCallbackCase = bulk({
  name: 'fill with one shared callback: no object per timer, delays 5–65 s',
  note: 'Handles and ids are stored in an array allocated beforehand, so the bytes are those of the timers alone.',
  size: { full: 1_000_000, quick: 100_000, of: 'timers' },
  measuresBytes: true,
  contestants: [
    baseline('setTimeout', fillHost),
    rival('binary heap', fillHeap),
    rival('timer-wheel', fillWheel),
    ours(OURS, fillOurs(withDelays)),
    ours(OURS_AT, fillOurs(withDeadlines)),
  ],
  targets: [atLeast(OURS, TIME, 8), atMost(OURS, BYTES, 40), atLeast(OURS_AT, TIME, 12)],
});

/** Adds between two readings of the clock: few enough to find a stall, enough to hide the cost of the reading. */
const CHUNK = 64;
const LONGEST_STALL = 'longest stall';
const RARE_STALL = 'p99.99 stall';
const MOST_MS = 20;

type AddChunk = (from: number, to: number) => void;

/** Times every chunk of adds. */
function openGrowth(timer: SystemTimer | HeapTimer, size: number, addChunk: AddChunk): BulkRun {
  const chunkMs = new Float64Array(Math.ceil(size / CHUNK));
  return {
    run: () => {
      let startMs = performance.now();
      for (let chunk = 0; chunk < chunkMs.length; chunk++) {
        addChunk(chunk * CHUNK, Math.min((chunk + 1) * CHUNK, size));
        const endMs = performance.now();
        chunkMs[chunk] = endMs - startMs;
        startMs = endMs;
      }
    },
    check: () => checkPending(timer.size, size, expired),
    close: () => timer.close(),
    details: () => {
      const sorted = chunkMs.toSorted();
      return {
        [LONGEST_STALL]: quantileOfSorted(sorted, 1),
        [RARE_STALL]: quantileOfSorted(sorted, 0.9999),
      };
    },
  };
}

function growOurs(size: number): BulkRun {
  const delays = newDelays(GROWTH);
  const timer = new SystemTimer();
  return openGrowth(timer, size, (from, to) => {
    for (let index = from; index < to; index++) timer.schedule(delays.next(), expire, index);
  });
}

/** As in a runtime that refuses shared memory. */
function growByCopy(size: number): BulkRun {
  const host = globalThis as { WebAssembly?: unknown };
  const { WebAssembly } = host;
  const grow = growOurs(size);
  return {
    ...grow,
    run: () => {
      host.WebAssembly = undefined;
      try {
        grow.run();
      } finally {
        host.WebAssembly = WebAssembly;
      }
    },
  };
}

function growHeap(size: number): BulkRun {
  const delays = newDelays(GROWTH);
  const timer = new HeapTimer(() => performance.now(), true);
  return openGrowth(timer, size, (from, to) => {
    for (let index = from; index < to; index++) timer.add(new ArgumentEntry(index), delays.next());
  });
}

export const growthCase = bulk({
  name: 'growth: schedule until ten million wait',
  note:
    `A stall is the longest time that ${CHUNK} consecutive adds took, pauses of the collector included; the last column ` +
    'has the longest pause alone. Which adds a pause hits depends on the machine.',
  size: { full: 10_000_000, quick: 1_000_000, of: 'timers' },
  rounds: 3,
  measuresBytes: true,
  measuresPauses: true,
  details: [metric(LONGEST_STALL, 'ms'), metric(RARE_STALL, 'ms')],
  contestants: [
    unable('setTimeout', 'at about 260 bytes each its timers need 2.6 GB, more heap than many hosts allow'),
    baseline('binary heap', growHeap),
    ours(OURS, growOurs),
    ours('ours: memory copied', growByCopy, 'Where shared memory is refused, the table grows by copy.'),
  ],
  targets: [atMost(OURS, LONGEST_STALL, MOST_MS)],
});

const OLDEST = 'oldest';
const RANDOM = 'random';
const MOST_WAITING = 10_000_000;
const SIZES = [1_000, 10_000, 100_000, 1_000_000, MOST_WAITING];

/** Times a cancellation and an insertion with so many waiting, in order of age and at random places. */
function costAt(waiting: number): Scenario {
  return (most) => {
    const size = Math.min(waiting, most);
    const operations = most / 10;
    const delays = newDelays(GROWTH);
    const random = new SeededRandom();
    const ids = new Float64Array(size);
    using timer = new SystemTimer();
    const nowMs = systemClock.now();
    let misses = 0;
    const add = (place: number): void => {
      ids[place] = timer.scheduleAt(nowMs + delays.next(), expire, place);
    };
    const replace = (place: number): void => {
      if (!timer.cancel(ids[place] as TimerId)) misses++;
      add(place);
    };
    for (let place = 0; place < size; place++) add(place);
    for (let done = 0; done < operations; done++) replace(random.nextInt(size));
    const startMs = performance.now();
    for (let done = 0; done < operations; done++) replace(done % size);
    const middleMs = performance.now();
    for (let done = 0; done < operations; done++) replace(random.nextInt(size));
    const endMs = performance.now();
    const values = {
      [OLDEST]: ((middleMs - startMs) * NS_PER_MS) / operations,
      [RANDOM]: ((endMs - middleMs) * NS_PER_MS) / operations,
    };
    const problem =
      misses > 0 ? `${misses} timers were not pending` : checkPending(timer.size, size, expired);
    return Promise.resolve({ values, problem });
  };
}

export const sizesCase = scenario({
  name: 'size: cancel + scheduleAt, from a thousand to ten million waiting',
  note: 'Without an object of the user: what grows is the timer, and an array of ids. A smoke run has fewer waiting.',
  size: { full: MOST_WAITING, quick: 100_000, of: 'timers at most' },
  metrics: [metric(OLDEST, 'ns/op'), metric(RANDOM, 'ns/op')],
  contestants: SIZES.map((waiting) => rival(`${waiting.toLocaleString('en')} waiting`, costAt(waiting))),
});
