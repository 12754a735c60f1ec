/** Timers without an object of the user: a million with one shared callback, growth to ten million, and what growth costs. */
import { performance } from 'node:perf_hooks';
import { systemClock, SystemTimer, type TimerId } from 'escapement';
import type { BulkRun, OpenBulk, Scenario } from '../lib/kinds.ts';
import { activeTimeouts } from '../lib/machine.ts';
import { baseline, NS_PER_MS, ours, rival, unable } from '../lib/part.ts';
import { DelaySequence, SeededRandom } from '../lib/random.ts';
import { quantileOfSorted } from '../lib/statistics.ts';
import { HeapEntry, HeapTimer } from './heap-timer.ts';
import { checkPending, keepOne, newRing } from './ring.ts';

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

/** Handles are kept, because timers that cannot be cancelled are of little use. */
function fillHost(size: number): BulkRun {
  const delays = newDelays(FILL);
  const handles = newRing<NodeJS.Timeout>(size);
  const foreign = activeTimeouts();
  return {
    run: () => {
      for (let index = 0; index < size; index++) handles[index] = setTimeout(expire, delays.next(), index);
    },
    check: () => checkPending(activeTimeouts() - foreign, size, expired),
    close: () => {
      for (const handle of handles) clearTimeout(handle);
      keepOne(handles);
    },
  };
}

function fillOurs(fill: (timer: SystemTimer, ids: Float64Array, delays: DelaySequence) => void): OpenBulk {
  return (size) => {
    const delays = newDelays(FILL);
    const timer = new SystemTimer();
    const ids = new Float64Array(size);
    return {
      run: () => fill(timer, ids, delays),
      check: () =>
        new Set(ids).size === size ? checkPending(timer.size, size, expired) : 'two timers have the same id',
      close: () => timer.close(),
    };
  };
}

const withDelays = fillOurs((timer, ids, delays) => {
  for (let index = 0; index < ids.length; index++) ids[index] = timer.schedule(delays.next(), expire, index);
});

const withDeadlines = fillOurs((timer, ids, delays) => {
  const nowMs = systemClock.now();
  for (let index = 0; index < ids.length; index++) {
    ids[index] = timer.scheduleAt(nowMs + delays.next(), expire, index);
  }
});

export const sharedCallback = [
  baseline('setTimeout', fillHost),
  ours('ours: schedule', withDelays),
  ours('ours: scheduleAt', withDeadlines),
];

/** Adds between two readings of the clock: few enough to find a stall, enough to hide the cost of the reading. */
const CHUNK = 64;

/** Times every chunk of adds. */
function grow(
  timer: SystemTimer | HeapTimer,
  size: number,
  addUpTo: (from: number, to: number) => void,
): BulkRun {
  const chunkMs = new Float64Array(Math.ceil(size / CHUNK));
  return {
    run: () => {
      let startMs = performance.now();
      for (let chunk = 0; chunk < chunkMs.length; chunk++) {
        addUpTo(chunk * CHUNK, Math.min((chunk + 1) * CHUNK, size));
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
        'longest stall': quantileOfSorted(sorted, 1),
        'p99.99 stall': quantileOfSorted(sorted, 0.9999),
      };
    },
  };
}

function growOurs(size: number): BulkRun {
  const delays = newDelays(GROWTH);
  const timer = new SystemTimer();
  return grow(timer, size, (from, to) => {
    for (let index = from; index < to; index++) timer.schedule(delays.next(), expire, index);
  });
}

/** As in a runtime that refuses shared memory. */
function growByCopy(size: number): BulkRun {
  const host = globalThis as { WebAssembly?: unknown };
  const { WebAssembly } = host;
  const growing = growOurs(size);
  return {
    ...growing,
    run: () => {
      host.WebAssembly = undefined;
      try {
        growing.run();
      } finally {
        host.WebAssembly = WebAssembly;
      }
    },
  };
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

function growHeap(size: number): BulkRun {
  const delays = newDelays(GROWTH);
  const timer = new HeapTimer(() => performance.now(), true);
  return grow(timer, size, (from, to) => {
    for (let index = from; index < to; index++) timer.add(new ArgumentEntry(index), delays.next());
  });
}

export const growth = [
  unable('setTimeout', 'at about 260 bytes each its timers need 2.6 GB, more heap than many hosts allow'),
  baseline('binary heap', growHeap),
  ours('ours: schedule', growOurs),
  ours('ours: memory copied', growByCopy, 'Where shared memory is refused, the table grows by copy.'),
];

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
    return Promise.resolve({
      values: {
        oldest: ((middleMs - startMs) * NS_PER_MS) / operations,
        random: ((endMs - middleMs) * NS_PER_MS) / operations,
      },
      problem: misses > 0 ? `${misses} timers were not pending` : checkPending(timer.size, size, expired),
    });
  };
}

export const sizes = [1_000, 10_000, 100_000, 1_000_000, 10_000_000].map((waiting) =>
  rival(`${waiting.toLocaleString('en')} waiting`, costAt(waiting)),
);
