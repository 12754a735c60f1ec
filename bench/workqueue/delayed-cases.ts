/** A million items that are to be queued later: how much they take, and what it costs when their time comes. */
import { performance } from 'node:perf_hooks';
import { DelayingQueue } from 'escapement';
import { BYTES } from '../lib/measurement.ts';
import type { BulkCase, BulkRun } from '../lib/part.ts';
import { DelaySequence } from '../timer/delay-sequence.ts';
import { activeTimeouts } from '../timer/host-waiting-set.ts';
import { fastqSync, fastqSyncWithSet } from './fastq-queues.ts';
import type { JobQueue } from './job-queue.ts';
import { Jobs, type Work } from './jobs.ts';
import { keysUpTo } from './keys.ts';

/** Nothing falls due while it is measured. */
const LONG = { minMs: 60_000, maxMs: 600_000 };
/** All fall due before anything can be done about it. */
const SHORT = { minMs: 1, maxMs: 100 };
/** Both count in milliseconds, and one of them rounds up. */
const SPARE_MS = 2;
const MOST_BYTES = 120;
const ARMED = 'host timeouts';

interface DelayedJobs {
  addAfter(keys: readonly string[], delays: DelaySequence): void;
  readonly waiting: number;
  close(): void;
}

/** What one writes: a timeout each, and a Map so that a key waits once and can be cancelled. The first time wins. */
class Timeouts implements DelayedJobs {
  readonly #timeouts = new Map<string, NodeJS.Timeout>();
  readonly #queue: JobQueue;
  readonly #due = (key: string): void => {
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
      if (!timeouts.has(key)) timeouts.set(key, setTimeout(this.#due, delays.next(), key));
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
const byHand: Make = (jobs) => new Timeouts(fastqSync.open(jobs, 1));
const withSet: Make = (jobs) => new Timeouts(fastqSyncWithSet.open(jobs, 1));
const ours: Make = (jobs) => new OurDelays(jobs);

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
        queue.waiting === size && jobs.worked === 0 ? undefined : `${queue.waiting} wait, not ${size}`,
      details: () => ({ [ARMED]: activeTimeouts() - foreign }),
      close: () => {
        queue.close();
      },
    };
  };
}

const fillCase: BulkCase = {
  kind: 'bulk',
  name: 'addAfter: delays 1–10 min',
  note: 'The keys are made before, and not counted: a string of 18 characters, as most of a million have, is 40 bytes.',
  size: { full: 1_000_000, quick: 20_000, of: 'items' },
  measuresBytes: true,
  details: [{ name: ARMED, unit: '' }],
  contestants: [
    { name: 'setTimeout + Map', role: 'baseline', open: openFill(byHand) },
    { name: 'ours', role: 'ours', open: openFill(ours) },
  ],
  targets: [
    { kind: 'limit', contestant: 'ours', metric: BYTES, atMost: MOST_BYTES },
    { kind: 'limit', contestant: 'ours', metric: ARMED, atMost: 1 },
  ],
};

/** All wait, and their time is over; what the run waits for is the last job. */
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
      check: () => jobs.check() ?? (queue.waiting === 0 ? undefined : `${queue.waiting} wait still`),
      close: () => {
        queue.close();
      },
    };
  };
}

const fireCase: BulkCase = {
  kind: 'bulk',
  name: 'delays are over: queued and done',
  note:
    'They fall due while the program is busy; timed is from there until the last job is done. Ours goes on in turns ' +
    'of the event loop, between which there is I/O; the host calls back all in one.',
  size: { full: 1_000_000, quick: 20_000, of: 'items' },
  contestants: [
    { name: 'setTimeout + Map + fastq', role: 'baseline', open: openFire(byHand) },
    {
      name: 'the same with a Set',
      role: 'rival',
      note: 'of the keys that are queued, so that none is twice; which ours knows, too.',
      open: openFire(withSet),
    },
    { name: 'ours', role: 'ours', open: openFire(ours) },
  ],
};

export const delayedCases: readonly BulkCase[] = [fillCase, fireCase];
