/** Ten tasks a millisecond: the time until each starts. And the memory of a million scheduled tasks. */
import { performance } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import { Task } from 'escapement/tasks';
import fastq from 'fastq';
import PQueue from 'p-queue';
import type { Scenario } from '../lib/kinds.ts';
import { inChild } from '../lib/memory.ts';
import { baseline, contest, expectCount, ours, rival, type Contestant } from '../lib/part.ts';
import { latencyValues, pace, Tally } from '../lib/work.ts';
import type { schedule } from './child.ts';
import { OurTasks } from './our-tasks.ts';

const CHILD = new URL('child.ts', import.meta.url);
const CONCURRENCY = 100;
const TASKS_PER_MS = 10;
/** Lower bound of a latency: the host rounds delays to milliseconds, and may be early by that. */
const LEAST_MS = 0.01;
/** Time between scheduling the first task and its deadline: enough to schedule all. */
const LEAD_MS = 1_000;

interface Starter {
  /** Adds a task that starts after `delayMs`. */
  add(dueMs: number, delayMs: number): void;
  close(): unknown;
}

/** @param onStart - called when a task starts, with the timestamp at which it should. */
type OpenStarter = (onStart: (dueMs: number) => void) => Starter | Promise<Starter>;
type AddAll = (starter: Starter, size: number) => Promise<void>;

const withFastq: OpenStarter = (onStart) => {
  const worker = (dueMs: number, done: fastq.done): void => {
    onStart(dueMs);
    done(null);
  };
  const queue = fastq(worker, CONCURRENCY);
  return { add: (dueMs) => queue.push(dueMs), close: () => void queue.kill() };
};

const withPQueue: OpenStarter = (onStart) => {
  const queue = new PQueue({ concurrency: CONCURRENCY });
  return { add: (dueMs) => void queue.add(() => onStart(dueMs)), close: () => queue.clear() };
};

const withTimeouts: OpenStarter = (onStart) => ({
  add: (dueMs, delayMs) => void setTimeout(onStart, delayMs, dueMs),
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

function latenciesOf(starters: readonly Contestant<OpenStarter>[], addAll: AddAll): Contestant<Scenario>[] {
  return contest(starters, (openStarter) => async (size) => {
    const latenciesMs = new Float64Array(size);
    const tally = new Tally(size);
    const starter = await openStarter((dueMs) => {
      latenciesMs[tally.completed] = Math.max(performance.now() - dueMs, LEAST_MS);
      tally.complete(tally.completed);
    });
    await addAll(starter, size);
    await tally.finished;
    await starter.close();
    return { values: latencyValues(latenciesMs), problem: expectCount(tally.completed, size, 'started') };
  });
}

export const started = latenciesOf(
  [baseline('fastq', withFastq), rival('p-queue', withPQueue), ours('ours', withOurs)],
  (starter, size) => pace(size, TASKS_PER_MS, () => starter.add(performance.now(), 0)),
);

/** All beforehand, each with its own deadline. The loop yields now and then, so that tasks that are due are not late. */
export const startedWhenDue = latenciesOf(
  [baseline('setTimeout', withTimeouts), ours('ours', withOurs)],
  async (starter, size) => {
    const startMs = performance.now() + LEAD_MS;
    for (let added = 0; added < size; added++) {
      const dueMs = startMs + added / TASKS_PER_MS;
      starter.add(dueMs, Math.max(dueMs - performance.now(), 0));
      if (added % 1_000 === 0) await sleep(0);
    }
  },
);

function scheduleIn(contestant: 'ours' | 'setTimeout'): Scenario {
  return async (size) => {
    const { bytes, armed, ns, waiting } = await inChild<typeof schedule>(CHILD, 'schedule', contestant, size);
    return {
      values: { 'bytes each': bytes, 'host timeouts': armed, 'time each': ns },
      problem: expectCount(waiting, size, 'tasks wait'),
    };
  };
}

export const scheduled = [
  baseline(
    'setTimeout',
    scheduleIn('setTimeout'),
    'an object with an id, a type and a payload, and a timeout for it.',
  ),
  ours('ours', scheduleIn('ours')),
];
