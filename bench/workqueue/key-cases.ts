/** Adds of queued keys, rate limiters, and a million items that are queued after a delay. */
import { performance } from 'node:perf_hooks';
import { defaultControllerRateLimiter, DelayingQueue, ItemExponentialFailureRateLimiter } from 'escapement';
import { WorkQueue, type RateLimiter } from 'escapement';
import { activeTimeouts } from '../lib/machine.ts';
import { bulk, micro, type BulkRun, type MicroRun } from '../lib/kinds.ts';
import { atMost, baseline, BYTES, expectCount, metric, ours, rival, TIME, unable } from '../lib/part.ts';
import type { BenchCase } from '../lib/part.ts';
import { DelaySequence } from '../lib/random.ts';
import type { Target } from '../lib/result.ts';
import { DISTINCT, Jobs, keysUpTo, type JobQueue, type Work } from './jobs.ts';
import { openFastq, openFastqWithSet } from './queues.ts';

/** Eight million adds a second. */
const MOST_NS = 125;

type KeySource = 'the same string' | 'a new string, made for it';

/** The Set that one writes around any queue: its keys are queued. */
function addsToSet(source: KeySource): (size: number) => MicroRun {
  return (size) => {
    const keys = keysUpTo(size);
    const queued = new Set(keys);
    const pushed = [...keys];
    const isNew = source !== 'the same string';
    let place = 0;
    return {
      run: (count) => {
        for (let done = 0; done < count; done++) {
          const key = isNew ? `default/pod-${place}` : (keys[place] as string);
          if (!queued.has(key)) {
            queued.add(key);
            pushed.push(key);
          }
          place = place + 1 === keys.length ? 0 : place + 1;
        }
      },
      check: () => expectCount(pushed.length, keys.length, 'keys are queued'),
    };
  };
}

function addsToOurs(source: KeySource): (size: number) => MicroRun {
  return (size) => {
    const keys = keysUpTo(size);
    const queue = new WorkQueue<string>();
    for (const key of keys) queue.add(key);
    const isNew = source !== 'the same string';
    let place = 0;
    return {
      run: (count) => {
        for (let done = 0; done < count; done++) {
          queue.add(isNew ? `default/pod-${place}` : (keys[place] as string));
          place = place + 1 === keys.length ? 0 : place + 1;
        }
      },
      check: () => expectCount(queue.length, keys.length, 'keys are queued'),
      close: () => queue.shutDown(),
    };
  };
}

function duplicateCase(source: KeySource, targets: readonly Target[]): BenchCase {
  return micro({
    name: `add of a key that is queued: ${source}`,
    size: { full: DISTINCT, quick: DISTINCT, of: 'keys queued' },
    contestants: [
      baseline('Set', addsToSet(source)),
      ...['fastq', 'async.queue', 'p-queue'].map((each) => unable(each, 'each add is another job')),
      ours('ours', addsToOurs(source)),
    ],
    targets,
  });
}

export const duplicateCases = [
  duplicateCase('the same string', [atMost('ours', TIME, MOST_NS)]),
  duplicateCase('a new string, made for it', []),
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

export const limiterCase = micro({
  name: 'rate limiters: when + forget',
  note: 'The default limiter counts the failures of each key, and reads the clock for a token bucket that all keys share.',
  size: { full: DISTINCT, quick: DISTINCT, of: 'keys in turn' },
  contestants: [
    baseline('a Map of counts', openByHand),
    ours('ours: exponential', openLimiter(newExponential)),
    ours('ours: the default', openLimiter(defaultControllerRateLimiter)),
  ],
});

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
  waiting(): number;
  close(): void;
}

/** What one writes by hand: a timeout for each key, and a Map so that a key waits once and can be cancelled. */
function timeouts(queue: JobQueue): DelayedJobs {
  const all = new Map<string, NodeJS.Timeout>();
  const onDue = (key: string): void => {
    all.delete(key);
    queue.add(key);
  };
  return {
    addAfter(keys, delays) {
      for (const key of keys) if (!all.has(key)) all.set(key, setTimeout(onDue, delays.next(), key));
    },
    waiting: () => all.size,
    close() {
      for (const timeout of all.values()) clearTimeout(timeout);
      all.clear();
      queue.close();
    },
  };
}

type Make = (jobs: Work) => DelayedJobs;
const byHand: Make = (jobs) => timeouts(openFastq(jobs, 1));
const withSet: Make = (jobs) => timeouts(openFastqWithSet(jobs, 1));

const delaying: Make = (jobs) => {
  const queue = new DelayingQueue<string>();
  void queue.run((key) => jobs.work(key));
  return {
    addAfter(keys, delays) {
      for (const key of keys) queue.addAfter(key, delays.next());
    },
    waiting: () => queue.waiting,
    close() {
      queue.shutDown();
    },
  };
};

function openFill(make: Make): (size: number) => BulkRun {
  return (size) => {
    const jobs = new Jobs();
    const keys = keysUpTo(size);
    const delays = new DelaySequence(LONG.minMs, LONG.maxMs);
    const foreign = activeTimeouts();
    const queue = make(jobs);
    return {
      run: () => queue.addAfter(keys, delays),
      check: () =>
        expectCount(queue.waiting(), size, 'items wait') ?? expectCount(jobs.worked, 0, 'jobs done'),
      details: () => ({ [ARMED]: activeTimeouts() - foreign }),
      close: () => queue.close(),
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
      run: () => allDone,
      check: () => jobs.check() ?? expectCount(queue.waiting(), 0, 'items still wait'),
      close: () => queue.close(),
    };
  };
}

const MILLION = { full: 1_000_000, quick: 20_000, of: 'items' };

export const delayedCases = [
  bulk({
    name: 'addAfter: delays 1–10 min',
    note: 'The keys exist before and are not counted: a string of 18 characters, as most of a million have, is 40 bytes.',
    size: MILLION,
    measuresBytes: true,
    details: [metric(ARMED)],
    contestants: [baseline('setTimeout + Map', openFill(byHand)), ours('ours', openFill(delaying))],
    targets: [atMost('ours', BYTES, MOST_BYTES), atMost('ours', ARMED, 1)],
  }),
  bulk({
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
  }),
];
