/** Adds of queued keys, rate limiters, and a million items that are queued after a delay. */
import { performance } from 'node:perf_hooks';
import { defaultControllerRateLimiter, DelayingQueue, ItemExponentialFailureRateLimiter } from 'escapement';
import { WorkQueue, type RateLimiter } from 'escapement';
import { activeTimeouts } from '../lib/machine.ts';
import { atMost, baseline, BYTES, metric, ours, rival, TIME, unable } from '../lib/part.ts';
import type { BulkCase, BulkRun, MicroCase, MicroRun } from '../lib/part.ts';
import { DelaySequence } from '../lib/random.ts';
import type { Target } from '../lib/result.ts';
import { DISTINCT, Jobs, keysUpTo, type JobQueue, type Work } from './jobs.ts';
import { openFastq, openFastqWithSet } from './queues.ts';

/** Eight million adds a second. */
const MOST_NS = 125;

/** The Set that one writes around any queue: its keys are queued. */
function setRun(
  keys: readonly string[],
  loopOf: (queued: Set<string>, pushed: string[]) => MicroRun['run'],
): MicroRun {
  const pushed = [...keys];
  return {
    run: loopOf(new Set(keys), pushed),
    check: () => (pushed.length === keys.length ? undefined : `${pushed.length} keys are queued`),
  };
}

function ourRun(keys: readonly string[], loopOf: (queue: WorkQueue<string>) => MicroRun['run']): MicroRun {
  const queue = new WorkQueue<string>();
  for (const key of keys) queue.add(key);
  return {
    run: loopOf(queue),
    check: () => (queue.length === keys.length ? undefined : `${queue.length} keys are queued`),
    close: () => {
      queue.shutDown();
    },
  };
}

function sameInSet(size: number): MicroRun {
  const keys = keysUpTo(size);
  let place = 0;
  return setRun(keys, (queued, pushed) => (count) => {
    for (let done = 0; done < count; done++) {
      const key = keys[place] as string;
      if (!queued.has(key)) {
        queued.add(key);
        pushed.push(key);
      }
      place = place + 1 === keys.length ? 0 : place + 1;
    }
  });
}

function sameInOurs(size: number): MicroRun {
  const keys = keysUpTo(size);
  let place = 0;
  return ourRun(keys, (queue) => (count) => {
    for (let done = 0; done < count; done++) {
      queue.add(keys[place] as string);
      place = place + 1 === keys.length ? 0 : place + 1;
    }
  });
}

function newInSet(size: number): MicroRun {
  const keys = keysUpTo(size);
  let place = 0;
  return setRun(keys, (queued, pushed) => (count) => {
    for (let done = 0; done < count; done++) {
      const key = `default/pod-${place}`;
      if (!queued.has(key)) {
        queued.add(key);
        pushed.push(key);
      }
      place = place + 1 === keys.length ? 0 : place + 1;
    }
  });
}

function newInOurs(size: number): MicroRun {
  const keys = keysUpTo(size);
  let place = 0;
  return ourRun(keys, (queue) => (count) => {
    for (let done = 0; done < count; done++) {
      queue.add(`default/pod-${place}`);
      place = place + 1 === keys.length ? 0 : place + 1;
    }
  });
}

function duplicateCase(
  name: string,
  openSet: (size: number) => MicroRun,
  openOurs: (size: number) => MicroRun,
  targets: readonly Target[],
): MicroCase {
  return {
    kind: 'micro',
    name: `add of a key that is queued: ${name}`,
    size: { full: DISTINCT, quick: DISTINCT, of: 'keys queued' },
    contestants: [
      baseline('Set', openSet),
      ...['fastq', 'async.queue', 'p-queue'].map((each) => unable(each, 'each add is another job')),
      ours('ours', openOurs),
    ],
    targets,
  };
}

export const duplicateCases: readonly MicroCase[] = [
  duplicateCase('the same string', sameInSet, sameInOurs, [atMost('ours', TIME, MOST_NS)]),
  duplicateCase('a new string, made for it', newInSet, newInOurs, []),
];

/** What one writes by hand: a Map of counts, without a common limit. */
function openByHand(size: number): MicroRun {
  const keys = keysUpTo(size);
  const failures = new Map<string, number>();
  let place = 0;
  let sumMs = 0;
  return {
    run: (count) => {
      for (let done = 0; done < count; done++) {
        const key = keys[place] as string;
        const failed = failures.get(key) ?? 0;
        failures.set(key, failed + 1);
        sumMs += Math.min(5 * 2 ** failed, 1_000_000);
        failures.delete(key);
        place = place + 1 === keys.length ? 0 : place + 1;
      }
    },
    check: () => (failures.size === 0 && sumMs > 0 ? undefined : `${failures.size} failures are left`),
  };
}

function openLimiter(newLimiter: () => RateLimiter<string>): (size: number) => MicroRun {
  return (size) => {
    const limiter = newLimiter();
    const keys = keysUpTo(size);
    let place = 0;
    let sumMs = 0;
    return {
      run: (count) => {
        for (let done = 0; done < count; done++) {
          const key = keys[place] as string;
          sumMs += limiter.when(key);
          limiter.forget(key);
          place = place + 1 === keys.length ? 0 : place + 1;
        }
      },
      check: () => {
        const left = keys.reduce((sum, key) => sum + limiter.numRequeues(key), 0);
        return left === 0 && sumMs > 0 ? undefined : `${left} failures are left`;
      },
    };
  };
}

const newExponential = (): RateLimiter<string> =>
  new ItemExponentialFailureRateLimiter({ baseDelayMs: 5, maxDelayMs: 1_000_000 });

export const limiterCase: MicroCase = {
  kind: 'micro',
  name: 'rate limiters: when + forget',
  note: 'The default limiter counts the failures of each key, and reads the clock for a token bucket that all keys share.',
  size: { full: DISTINCT, quick: DISTINCT, of: 'keys in turn' },
  contestants: [
    baseline('a Map of counts', openByHand),
    ours('ours: exponential', openLimiter(newExponential)),
    ours('ours: the default', openLimiter(defaultControllerRateLimiter)),
  ],
};

/** Nothing is due while it is measured. */
const LONG = { minMs: 60_000, maxMs: 600_000 };
/** All are due before the measurement starts. */
const SHORT = { minMs: 1, maxMs: 100 };
/** Clock and timer count in milliseconds, and one of them rounds up. */
const SPARE_MS = 2;
const MOST_BYTES = 120;
const ARMED = 'host timeouts';

interface DelayedJobs {
  addAfter(keys: readonly string[], delays: DelaySequence): void;
  readonly waiting: number;
  close(): void;
}

/** What one writes by hand: a timeout for each key, and a Map so that a key waits once and can be cancelled. */
class Timeouts implements DelayedJobs {
  readonly #timeouts = new Map<string, NodeJS.Timeout>();
  readonly #queue: JobQueue;
  readonly #onDue = (key: string): void => {
    this.#timeouts.delete(key);
    this.#queue.add(key);
  };

  constructor(queue: JobQueue) {
    this.#queue = queue;
  }

  get waiting(): number {
    return this.#timeouts.size;
  }

  addAfter(keys: readonly string[], delays: DelaySequence): void {
    const timeouts = this.#timeouts;
    for (const key of keys) {
      if (!timeouts.has(key)) timeouts.set(key, setTimeout(this.#onDue, delays.next(), key));
    }
  }

  close(): void {
    for (const timeout of this.#timeouts.values()) clearTimeout(timeout);
    this.#timeouts.clear();
    this.#queue.close();
  }
}

class OurDelays implements DelayedJobs {
  readonly #queue = new DelayingQueue<string>();

  constructor(jobs: Work) {
    void this.#queue.run((key) => {
      jobs.work(key);
    });
  }

  get waiting(): number {
    return this.#queue.waiting;
  }

  addAfter(keys: readonly string[], delays: DelaySequence): void {
    const queue = this.#queue;
    for (const key of keys) queue.addAfter(key, delays.next());
  }

  close(): void {
    this.#queue.shutDown();
  }
}

type Make = (jobs: Work) => DelayedJobs;
const byHand: Make = (jobs) => new Timeouts(openFastq(jobs, 1));
const withSet: Make = (jobs) => new Timeouts(openFastqWithSet(jobs, 1));
const delaying: Make = (jobs) => new OurDelays(jobs);

function openFill(make: Make): (size: number) => BulkRun {
  return (size) => {
    const jobs = new Jobs();
    const keys = keysUpTo(size);
    const delays = new DelaySequence(LONG.minMs, LONG.maxMs);
    const foreign = activeTimeouts();
    const queue = make(jobs);
    return {
      run: () => {
        queue.addAfter(keys, delays);
        return size;
      },
      check: () =>
        queue.waiting === size && jobs.worked === 0 ? undefined : `${queue.waiting} items wait, not ${size}`,
      details: () => ({ [ARMED]: activeTimeouts() - foreign }),
      close: () => {
        queue.close();
      },
    };
  };
}

/** Adds items and blocks until all are due. The run ends with the last job. */
function openFire(make: Make): (size: number) => BulkRun {
  return (size) => {
    const jobs = new Jobs();
    const keys = keysUpTo(size);
    const queue = make(jobs);
    const allDone = jobs.expect(keys);
    queue.addAfter(keys, new DelaySequence(SHORT.minMs, SHORT.maxMs));
    const dueAtMs = performance.now() + SHORT.maxMs + SPARE_MS;
    while (performance.now() < dueAtMs);
    return {
      run: async () => {
        await allDone;
        return size;
      },
      check: () => jobs.check() ?? (queue.waiting === 0 ? undefined : `${queue.waiting} items still wait`),
      close: () => {
        queue.close();
      },
    };
  };
}

const MILLION = { full: 1_000_000, quick: 20_000, of: 'items' };

export const delayedCases: readonly BulkCase[] = [
  {
    kind: 'bulk',
    name: 'addAfter: delays 1–10 min',
    note: 'The keys exist before and are not counted: a string of 18 characters, as most of a million have, is 40 bytes.',
    size: MILLION,
    measuresBytes: true,
    details: [metric(ARMED)],
    contestants: [baseline('setTimeout + Map', openFill(byHand)), ours('ours', openFill(delaying))],
    targets: [atMost('ours', BYTES, MOST_BYTES), atMost('ours', ARMED, 1)],
  },
  {
    kind: 'bulk',
    name: 'delays are over: queued and done',
    note:
      'They become due while the program is busy; timed is from there until the last job is done. Ours works in several ' +
      'turns of the event loop, with I/O in between; the host calls back all in one.',
    size: MILLION,
    contestants: [
      baseline('setTimeout + Map + fastq', openFire(byHand)),
      rival(
        'the same with a Set',
        openFire(withSet),
        'of the queued keys, so that none is queued twice, as in ours.',
      ),
      ours('ours', openFire(delaying)),
    ],
  },
];
