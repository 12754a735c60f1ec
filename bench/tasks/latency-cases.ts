/** Ten tasks a millisecond, evenly: how long until each is started? */
import { performance } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import { Task } from 'escapement/tasks';
import fastq from 'fastq';
import PQueue from 'p-queue';
import type { Contestant, ScenarioCase, ScenarioOutcome } from '../lib/part.ts';
import { quantileOfSorted } from '../lib/statistics.ts';
import { OurTasks } from './our-tasks.ts';

const CONCURRENCY = 100;
const TASKS_PER_MS = 10;
const P50 = 'p50 latency';
const P99 = 'p99 latency';
const MOST_P99_MS = 5;
/** Less is not told from nothing: the host rounds delays to milliseconds, and may be early by that. */
const LEAST_MS = 0.01;
/** The first ones find everything cold. */
const WARM_UP_SHARE = 0.1;
/** Between the scheduling of the first and its moment: enough to schedule all. */
const LEAD_MS = 1_000;

/** Called with the moment that a task was for, when it starts. */
type OnStart = (forMs: number) => void;

interface Starter {
  /** Adds a task; started at once if `delayMs` is 0. */
  add(forMs: number, delayMs: number): void;
  /** @returns a promise if it takes its time. */
  close(): unknown;
}

type OpenStarter = (onStart: OnStart) => Starter | Promise<Starter>;

/** How late tasks have started. */
class Latencies {
  readonly done: Promise<void>;
  readonly #samplesMs: Float64Array;
  #count = 0;
  #finish: () => void = () => undefined;

  constructor(size: number) {
    this.#samplesMs = new Float64Array(size);
    this.done = new Promise((resolve) => {
      this.#finish = resolve;
    });
  }

  readonly onStart: OnStart = (forMs) => {
    this.#samplesMs[this.#count++] = Math.max(performance.now() - forMs, LEAST_MS);
    if (this.#count === this.#samplesMs.length) this.#finish();
  };

  outcome(): ScenarioOutcome {
    const { length } = this.#samplesMs;
    const sorted = this.#samplesMs.slice(Math.ceil(length * WARM_UP_SHARE)).sort();
    const values = { [P50]: quantileOfSorted(sorted, 0.5), [P99]: quantileOfSorted(sorted, 0.99) };
    return { values, problem: this.#count === length ? undefined : `${this.#count} started, not ${length}` };
  }
}

const withFastq: OpenStarter = (onStart) => {
  const queue = fastq((forMs: number, done: fastq.done) => {
    onStart(forMs);
    done(null);
  }, CONCURRENCY);
  return {
    add: (forMs) => {
      queue.push(forMs);
    },
    close: () => {
      queue.kill();
    },
  };
};

const withPQueue: OpenStarter = (onStart) => {
  const queue = new PQueue({ concurrency: CONCURRENCY });
  return {
    add: (forMs) => {
      void queue.add(() => {
        onStart(forMs);
      });
    },
    close: () => {
      queue.clear();
    },
  };
};

const withTimeouts: OpenStarter = (onStart) => ({
  add: (forMs, delayMs) => {
    setTimeout(onStart, delayMs, forMs);
  },
  close: () => undefined,
});

/** The moment travels as the payload. */
const withOurs: OpenStarter = async (onStart) => {
  const ours = await OurTasks.open(CONCURRENCY);
  await ours.start(({ payload }) => {
    onStart(new DataView(payload.buffer, payload.byteOffset).getFloat64(0));
  });
  return {
    add: (forMs, delayMs) => {
      const payload = new Uint8Array(Float64Array.BYTES_PER_ELEMENT);
      new DataView(payload.buffer).setFloat64(0, forMs);
      const task = new Task('work', payload);
      void ours.client.enqueue(task, { processInMs: delayMs });
    },
    close: () => ours.close(),
  };
};

/** The host's timers are late at times: then what is due is added at once. */
async function addEvenly(starter: Starter, size: number): Promise<void> {
  const startMs = performance.now();
  for (let added = 0; added < size;) {
    await sleep(1);
    const nowMs = performance.now();
    const due = Math.min(Math.floor((nowMs - startMs) * TASKS_PER_MS), size);
    for (; added < due; added++) starter.add(performance.now(), 0);
  }
}

/** All of them beforehand, each for a moment of its own. A turn now and then: what was added is not to be late for that. */
async function scheduleEvenly(starter: Starter, size: number): Promise<void> {
  const startMs = performance.now() + LEAD_MS;
  for (let added = 0; added < size; added++) {
    const forMs = startMs + added / TASKS_PER_MS;
    starter.add(forMs, Math.max(forMs - performance.now(), 0));
    if (added % 1_000 === 0) await sleep(0);
  }
}

function open(
  openStarter: OpenStarter,
  addAll: (starter: Starter, size: number) => Promise<void>,
): (size: number) => Promise<ScenarioOutcome> {
  return async (size) => {
    const latencies = new Latencies(size);
    const starter = await openStarter(latencies.onStart);
    await addAll(starter, size);
    await latencies.done;
    await starter.close();
    return latencies.outcome();
  };
}

function latencyCase(
  name: string,
  note: string,
  starters: readonly Contestant<OpenStarter>[],
  addAll: (starter: Starter, size: number) => Promise<void>,
): ScenarioCase {
  return {
    kind: 'scenario',
    name,
    note,
    size: { full: 30_000, quick: 1_000, of: 'tasks' },
    metrics: [
      { name: P50, unit: 'ms' },
      { name: P99, unit: 'ms' },
    ],
    contestants: starters.map((starter) => ({ ...starter, open: open(starter.open as OpenStarter, addAll) })),
    targets: [{ kind: 'limit', contestant: 'ours', metric: P99, atMost: MOST_P99_MS }],
  };
}

const OURS: Contestant<OpenStarter> = { name: 'ours', role: 'ours', open: withOurs };

export const latencyCases: readonly ScenarioCase[] = [
  latencyCase(
    'ten tasks a millisecond: from enqueued to started',
    'About ten come at once, which is as well as the host’s timers do it. fastq calls its worker inside of push.',
    [
      { name: 'fastq', role: 'baseline', open: withFastq },
      { name: 'p-queue', role: 'rival', open: withPQueue },
      OURS,
    ],
    addEvenly,
  ),
  latencyCase(
    'ten scheduled tasks a millisecond: from due to started',
    'The host’s timers may be a millisecond late by themselves.',
    [{ name: 'setTimeout', role: 'baseline', open: withTimeouts }, OURS],
    scheduleEvenly,
  ),
];
