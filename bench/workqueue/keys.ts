/** Adds of queued keys, rate limiters, and a million items that are queued after a delay. */
import { defaultControllerRateLimiter, DelayingQueue, WorkQueue } from 'escapement';
import type { MicroRun, OpenBulk } from '../lib/kinds.ts';
import { activeTimeouts } from '../lib/machine.ts';
import { baseline, contest, expectCount, ours } from '../lib/part.ts';
import { DelaySequence } from '../lib/random.ts';
import { blockUntilDue } from '../lib/work.ts';
import { Jobs, KeysInTurn, keysUpTo, type Work } from './jobs.ts';
import { openFastq } from './queues.ts';

/** The Set that one writes around any queue: its keys are queued. */
function addsToSet(size: number): MicroRun {
  const keys = keysUpTo(size);
  const inTurn = new KeysInTurn(keys);
  const queued = new Set(keys);
  const pushed = [...keys];
  return {
    run: (count) => {
      for (let done = 0; done < count; done++) {
        const key = inTurn.next();
        if (!queued.has(key)) {
          queued.add(key);
          pushed.push(key);
        }
      }
    },
    check: () => expectCount(pushed.length, keys.length, 'keys are queued'),
  };
}

function addsToOurs(size: number): MicroRun {
  const keys = keysUpTo(size);
  const inTurn = new KeysInTurn(keys);
  const queue = new WorkQueue<string>();
  for (const key of keys) queue.add(key);
  return {
    run: (count) => {
      for (let done = 0; done < count; done++) queue.add(inTurn.next());
    },
    check: () => expectCount(queue.length, keys.length, 'keys are queued'),
    close: () => queue.shutDown(),
  };
}

export const duplicates = [baseline('Set', addsToSet), ours('ours', addsToOurs)];

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

function openLimiter(size: number): MicroRun {
  const limiter = defaultControllerRateLimiter<string>();
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
}

export const limiters = [baseline('a Map of counts', openByHand), ours('ours: the default', openLimiter)];

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
const byHand: OpenDelayed = (jobs) => {
  const queue = openFastq(jobs, 1);
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
};

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

const DELAYED = [baseline('setTimeout + Map + fastq', byHand), ours('ours', delaying)];

export const adding = contest<OpenDelayed, OpenBulk>(DELAYED, (open) => (size) => {
  const jobs = new Jobs();
  const keys = keysUpTo(size);
  const delays = new DelaySequence(LONG.minMs, LONG.maxMs);
  const foreign = activeTimeouts();
  const queue = open(jobs);
  return {
    run: () => queue.addAfter(keys, delays),
    check: () => expectCount(queue.waiting(), size, 'items wait') ?? expectCount(jobs.worked, 0, 'jobs done'),
    details: () => ({ 'host timeouts': activeTimeouts() - foreign }),
    close: () => queue.close(),
  };
});

/** Adds items and blocks until all are due. The run ends with the last job. */
export const firing = contest<OpenDelayed, OpenBulk>(DELAYED, (open) => (size) => {
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
});
