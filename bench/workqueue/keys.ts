/** Adds of queued keys, rate limiters, and a million items that are queued after a delay. */
import { defaultControllerRateLimiter, DelayingQueue, ItemExponentialFailureRateLimiter } from 'escapement';
import { WorkQueue, type RateLimiter } from 'escapement';
import type { MicroRun, OpenBulk, OpenMicro } from '../lib/kinds.ts';
import { activeTimeouts } from '../lib/machine.ts';
import { baseline, contest, expectCount, ours, rival, unable, type Contestant } from '../lib/part.ts';
import { DelaySequence } from '../lib/random.ts';
import { blockUntilDue } from '../lib/work.ts';
import { Jobs, KeysInTurn, keysUpTo, type JobQueue, type Work } from './jobs.ts';
import { openFastq, openFastqWithSet } from './queues.ts';

/** The Set that one writes around any queue: its keys are queued. */
function addsToSet(areKeysNew: boolean): OpenMicro {
  return (size) => {
    const keys = keysUpTo(size);
    const inTurn = new KeysInTurn(keys);
    const queued = new Set(keys);
    const pushed = [...keys];
    return {
      run: (count) => {
        for (let done = 0; done < count; done++) {
          const key = areKeysNew ? inTurn.nextNew() : inTurn.next();
          if (!queued.has(key)) {
            queued.add(key);
            pushed.push(key);
          }
        }
      },
      check: () => expectCount(pushed.length, keys.length, 'keys are queued'),
    };
  };
}

function addsToOurs(areKeysNew: boolean): OpenMicro {
  return (size) => {
    const keys = keysUpTo(size);
    const inTurn = new KeysInTurn(keys);
    const queue = new WorkQueue<string>();
    for (const key of keys) queue.add(key);
    return {
      run: (count) => {
        for (let done = 0; done < count; done++) queue.add(areKeysNew ? inTurn.nextNew() : inTurn.next());
      },
      check: () => expectCount(queue.length, keys.length, 'keys are queued'),
      close: () => queue.shutDown(),
    };
  };
}

export function duplicates(areKeysNew: boolean): Contestant<OpenMicro>[] {
  return [
    baseline('Set', addsToSet(areKeysNew)),
    ...['fastq', 'async.queue', 'p-queue'].map((each) => unable(each, 'each add is another job')),
    ours('ours', addsToOurs(areKeysNew)),
  ];
}

/** What one writes by hand: a Map of counts, without a common limit. */
function openByHand(size: number): MicroRun {
  const keys = new KeysInTurn(keysUpTo(size));
  const failures = new Map<string, number>();
  let sumMs = 0;
  return {
    run: (count) => {
      for (let done = 0; done < count; done++) {
        const key = keys.next();
        const failed = failures.get(key) ?? 0;
        failures.set(key, failed + 1);
        sumMs += Math.min(5 * 2 ** failed, 1_000_000);
        failures.delete(key);
      }
    },
    check: () => (failures.size === 0 && sumMs > 0 ? undefined : `${failures.size} failures are left`),
  };
}

function openLimiter(newLimiter: () => RateLimiter<string>): OpenMicro {
  return (size) => {
    const limiter = newLimiter();
    const all = keysUpTo(size);
    const keys = new KeysInTurn(all);
    let sumMs = 0;
    return {
      run: (count) => {
        for (let done = 0; done < count; done++) {
          const key = keys.next();
          sumMs += limiter.when(key);
          limiter.forget(key);
        }
      },
      check: () => {
        const left = all.reduce((sum, key) => sum + limiter.numRequeues(key), 0);
        return left === 0 && sumMs > 0 ? undefined : `${left} failures are left`;
      },
    };
  };
}

const newExponential = (): RateLimiter<string> =>
  new ItemExponentialFailureRateLimiter({ baseDelayMs: 5, maxDelayMs: 1_000_000 });

export const limiters = [
  baseline('a Map of counts', openByHand),
  ours('ours: exponential', openLimiter(newExponential)),
  ours('ours: the default', openLimiter(defaultControllerRateLimiter)),
];

/** Nothing is due while it is measured. */
const LONG = { minMs: 60_000, maxMs: 600_000 };
/** All are due before the measurement starts. */
const SHORT = { minMs: 1, maxMs: 100 };

interface DelayedJobs {
  addAfter(keys: readonly string[], delays: DelaySequence): void;
  waiting(): number;
  close(): void;
}

type OpenDelayed = (jobs: Work) => DelayedJobs;

/** What one writes by hand: a timeout for each key, and a Map so that a key waits once and can be cancelled. */
function timeouts(queue: JobQueue): DelayedJobs {
  const all = new Map<string, NodeJS.Timeout>();
  const onDue = (key: string): void => {
    all.delete(key);
    queue.add(key);
  };
  return {
    addAfter: (keys, delays) => {
      for (const key of keys) if (!all.has(key)) all.set(key, setTimeout(onDue, delays.next(), key));
    },
    waiting: () => all.size,
    close: () => {
      for (const timeout of all.values()) clearTimeout(timeout);
      all.clear();
      queue.close();
    },
  };
}

const byHand: OpenDelayed = (jobs) => timeouts(openFastq(jobs, 1));

const delaying: OpenDelayed = (jobs) => {
  const queue = new DelayingQueue<string>();
  void queue.run((key) => jobs.work(key));
  return {
    addAfter: (keys, delays) => {
      for (const key of keys) queue.addAfter(key, delays.next());
    },
    waiting: () => queue.waiting,
    close: () => void queue.shutDown(),
  };
};

export const adding = contest<OpenDelayed, OpenBulk>(
  [baseline('setTimeout + Map', byHand), ours('ours', delaying)],
  (open) => (size) => {
    const jobs = new Jobs();
    const keys = keysUpTo(size);
    const delays = new DelaySequence(LONG.minMs, LONG.maxMs);
    const foreign = activeTimeouts();
    const queue = open(jobs);
    return {
      run: () => queue.addAfter(keys, delays),
      check: () =>
        expectCount(queue.waiting(), size, 'items wait') ?? expectCount(jobs.worked, 0, 'jobs done'),
      details: () => ({ 'host timeouts': activeTimeouts() - foreign }),
      close: () => queue.close(),
    };
  },
);

/** Adds items and blocks until all are due. The run ends with the last job. */
export const firing = contest<OpenDelayed, OpenBulk>(
  [
    baseline('setTimeout + Map + fastq', byHand),
    rival(
      'the same with a Set',
      (jobs) => timeouts(openFastqWithSet(jobs, 1)),
      'of the queued keys, so that none is queued twice, as in ours.',
    ),
    ours('ours', delaying),
  ],
  (open) => (size) => {
    const jobs = new Jobs();
    const keys = keysUpTo(size);
    const queue = open(jobs);
    const allDone = jobs.expect(keys);
    queue.addAfter(keys, new DelaySequence(SHORT.minMs, SHORT.maxMs));
    blockUntilDue(SHORT.maxMs);
    return {
      run: () => allDone,
      check: () => jobs.check() ?? expectCount(queue.waiting(), 0, 'items still wait'),
      close: () => queue.close(),
    };
  },
);
