/** Ten tasks a millisecond: the time until each starts. And the memory of a million scheduled tasks. */
import { performance } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import { Task } from 'escapement/tasks';
import fastq from 'fastq';
import PQueue from 'p-queue';
import { latencyValues, P50, P99, pace } from '../lib/latencies.ts';
import { scenario, type Scenario } from '../lib/kinds.ts';
import { inChild } from '../lib/memory.ts';
import { aside, atMost, baseline, contest, expectCount, metric, ours, rival } from '../lib/part.ts';
import type { BenchCase, Contestant, Measurement } from '../lib/part.ts';
import type { schedule } from './child.ts';
import { OurTasks } from './our-tasks.ts';

const CONCURRENCY = 100;
const TASKS_PER_MS = 10;
const MOST_P99_MS = 5;
/** Lower bound of a latency: the host rounds delays to milliseconds, and may be early by that. */
const LEAST_MS = 0.01;
/** Time between scheduling the first task and its deadline: enough to schedule all. */
const LEAD_MS = 1_000;

/** Called when a task starts, with the timestamp at which it should. */
type OnStart = (dueMs: number) => void;

interface Starter {
  /** Adds a task that starts after `delayMs`. */
  add(dueMs: number, delayMs: number): void;
  close(): unknown;
}

type OpenStarter = (onStart: OnStart) => Starter | Promise<Starter>;
type AddAll = (starter: Starter, size: number) => Promise<void>;

/** Records how late tasks have started. */
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

  readonly onStart: OnStart = (dueMs) => {
    this.#samplesMs[this.#count++] = Math.max(performance.now() - dueMs, LEAST_MS);
    if (this.#count === this.#samplesMs.length) this.#finish();
  };

  outcome(): Measurement {
    const problem = expectCount(this.#count, this.#samplesMs.length, 'started');
    return { values: latencyValues(this.#samplesMs), problem };
  }
}

const withFastq: OpenStarter = (onStart) => {
  const queue = fastq((dueMs: number, done: fastq.done) => {
    onStart(dueMs);
    done(null);
  }, CONCURRENCY);
  return {
    add: (dueMs) => queue.push(dueMs),
    close: () => {
      queue.kill();
    },
  };
};

const withPQueue: OpenStarter = (onStart) => {
  const queue = new PQueue({ concurrency: CONCURRENCY });
  return {
    add: (dueMs) => {
      void queue.add(() => onStart(dueMs));
    },
    close: () => queue.clear(),
  };
};

const withTimeouts: OpenStarter = (onStart) => ({
  add: (dueMs, delayMs) => {
    setTimeout(onStart, delayMs, dueMs);
  },
  close: () => undefined,
});

/** The timestamp is the payload. */
const withOurs: OpenStarter = async (onStart) => {
  const tasks = await OurTasks.open();
  await tasks.start(CONCURRENCY, ({ payload }) =>
    onStart(new DataView(payload.buffer, payload.byteOffset).getFloat64(0)),
  );
  return {
    add: (dueMs, delayMs) => {
      const payload = new Uint8Array(Float64Array.BYTES_PER_ELEMENT);
      new DataView(payload.buffer).setFloat64(0, dueMs);
      void tasks.client.enqueue(new Task('work', payload), { processInMs: delayMs });
    },
    close: () => tasks.close(),
  };
};

const addEvenly: AddAll = (starter, size) =>
  pace(size, TASKS_PER_MS, () => starter.add(performance.now(), 0));

/** All beforehand, each with its own deadline. The loop yields now and then, so that tasks that are due are not late. */
const scheduleEvenly: AddAll = async (starter, size) => {
  const startMs = performance.now() + LEAD_MS;
  for (let added = 0; added < size; added++) {
    const dueMs = startMs + added / TASKS_PER_MS;
    starter.add(dueMs, Math.max(dueMs - performance.now(), 0));
    if (added % 1_000 === 0) await sleep(0);
  }
};

function latencyCase(
  name: string,
  note: string,
  starters: readonly Contestant<OpenStarter>[],
  addAll: AddAll,
): BenchCase {
  return scenario({
    name,
    note,
    size: { full: 30_000, quick: 1_000, of: 'tasks' },
    metrics: [metric(P50, 'ms'), metric(P99, 'ms')],
    contestants: contest<OpenStarter, Scenario>(starters, (openStarter) => async (size) => {
      const latencies = new Latencies(size);
      const starter = await openStarter(latencies.onStart);
      await addAll(starter, size);
      await latencies.done;
      await starter.close();
      return latencies.outcome();
    }),
    targets: [atMost('ours', P99, MOST_P99_MS)],
  });
}

const OURS = ours('ours', withOurs);

export const latencyCases = [
  latencyCase(
    'ten tasks a millisecond: from enqueued to started',
    'About ten are enqueued at once, because the host’s timers have a resolution of a millisecond. fastq calls its worker ' +
      'inside of push.',
    [baseline('fastq', withFastq), rival('p-queue', withPQueue), OURS],
    addEvenly,
  ),
  latencyCase(
    'ten scheduled tasks a millisecond: from due to started',
    'The host’s timers alone may be a millisecond late.',
    [baseline('setTimeout', withTimeouts), OURS],
    scheduleEvenly,
  ),
];

const BYTES_EACH = 'bytes each';
const ARMED = 'host timeouts';
const TIME_EACH = 'time each';
const MOST_BYTES = 600;
const CHILD = new URL('child.ts', import.meta.url);

function scheduleIn(contestant: 'ours' | 'setTimeout'): Scenario {
  return async (size) => {
    const { bytes, armed, ns, waiting } = await inChild<typeof schedule>(CHILD, 'schedule', contestant, size);
    return {
      values: { [BYTES_EACH]: bytes, [ARMED]: armed, [TIME_EACH]: ns },
      problem: expectCount(waiting, size, 'tasks wait'),
    };
  };
}

export const scheduledCase = scenario({
  name: 'a million tasks scheduled, for the next hour to ten',
  note:
    'In a process of its own. Bytes do not include the payload, which is 32 bytes for each task, nor the promises of ' +
    'enqueue.',
  size: { full: 1_000_000, quick: 10_000, of: 'tasks' },
  rounds: 1,
  metrics: [metric(BYTES_EACH, 'bytes'), aside(ARMED), metric(TIME_EACH, 'ns')],
  contestants: [
    baseline(
      'setTimeout',
      scheduleIn('setTimeout'),
      'an object with an id, a type and a payload, and a timeout for it.',
    ),
    ours('ours', scheduleIn('ours')),
  ],
  targets: [atMost('ours', BYTES_EACH, MOST_BYTES), atMost('ours', ARMED, 1)],
});
