/** Tasks in a folder: 100 callers and one, opening a folder with a million tasks, and the stalls of compaction. */
import { readdir, stat } from 'node:fs/promises';
import { performance } from 'node:perf_hooks';
import { Task } from 'escapement/tasks';
import { closing, withFolder } from '../lib/folder.ts';
import { scenario, type Scenario } from '../lib/kinds.ts';
import { WARM_UP_SHARE } from '../lib/latencies.ts';
import { spentBy } from '../lib/machine.ts';
import { inChild } from '../lib/memory.ts';
import { aside, baseline, contest, expectCount, metric, ours, TIME, US_PER_MS } from '../lib/part.ts';
import type { BenchCase, Measurement, Size } from '../lib/part.ts';
import { payloadOf, type Payload } from '../redis/contestant.ts';
import type { fill, open as openInChild } from './child.ts';
import { CONCURRENCY, DURABLE, type DurableQueue, type OpenDurable } from './durable-queues.ts';
import { OurTasks } from './our-tasks.ts';

const CALLERS = 100;
const US_A_TASK = 'µs/task';
const CPU = 'cpu';

/** Callers that enqueue tasks one after the other. */
class Callers {
  readonly #add: (payload: Payload) => Promise<unknown>;
  /** By the number of a task that is not done. */
  readonly #waiting = new Map<number, () => void>();
  #next = 0;
  problem: string | undefined;

  constructor(add: (payload: Payload) => Promise<unknown>) {
    this.#add = add;
  }

  readonly onDone = ({ number }: Payload): void => {
    const resolve = this.#waiting.get(number);
    if (resolve === undefined) this.problem ??= `task ${number} is unknown, or was done twice`;
    this.#waiting.delete(number);
    resolve?.();
  };

  /** @param waits - whether a caller waits until its task is done, or only until it is enqueued. */
  async run(count: number, callers: number, waits: boolean): Promise<void> {
    const end = this.#next + count;
    const call = async (): Promise<void> => {
      while (this.#next < end) {
        const payload = payloadOf(this.#next++);
        const done = waits ? this.#done(payload) : undefined;
        await this.#add(payload);
        await done;
      }
    };
    await Promise.all(Array.from({ length: callers }, call));
  }

  #done({ number }: Payload): Promise<void> {
    return new Promise((resolve) => {
      this.#waiting.set(number, resolve);
    });
  }
}

/** How long a contestant runs before it is measured: until then much of the time of a fast one is that of the compiler. */
const WARM_UP_MS = 1_000;
/** Most tasks of that, as a multiple of those that are measured. */
const MOST_WARM_UP = 4;

/** @returns the number of tasks. */
async function warmUp(calls: Callers, callers: number, waits: boolean, size: number): Promise<number> {
  const startMs = performance.now();
  const piece = Math.ceil(size * WARM_UP_SHARE);
  let tasks = 0;
  do {
    await calls.run(piece, callers, waits);
    tasks += piece;
  } while (performance.now() - startMs < WARM_UP_MS && tasks < size * MOST_WARM_UP);
  return tasks;
}

/** @param waits - whether the tasks are processed. */
async function callBy(
  queue: DurableQueue,
  callers: number,
  waits: boolean,
  size: number,
): Promise<Measurement> {
  const calls = new Callers((payload) => queue.add(payload));
  if (waits) await queue.work(CONCURRENCY, undefined, calls.onDone);
  const before = await warmUp(calls, callers, waits, size);
  const { elapsedMs, cpuUs } = await spentBy(() => calls.run(size, callers, waits));
  const wrong = expectCount(await queue.left(), waits ? 0 : before + size, 'tasks are left');
  return {
    values: { [TIME]: (elapsedMs * US_PER_MS) / size, [CPU]: cpuUs / size },
    problem: calls.problem ?? wrong,
  };
}

function callersCase(name: string, callers: number, waits: boolean, size: Size, note: string): BenchCase {
  return scenario({
    name,
    note,
    size,
    metrics: [metric(TIME, US_A_TASK), metric(CPU, US_A_TASK)],
    contestants: contest<OpenDurable, Scenario>(
      DURABLE,
      (open) => (tasks) =>
        withFolder(async (folder) =>
          closing(await open(folder), (queue) => callBy(queue, callers, waits, tasks)),
        ),
    ),
  });
}

export const durableCases = [
  callersCase(
    'on a disk, 100 callers: from enqueued to done',
    CALLERS,
    true,
    { full: 20_000, quick: 300, of: 'tasks' },
    'Each caller waits until its task is done, and enqueues the next, for a second before it is measured. cpu: of this process, without ' +
      'Redis.',
  ),
  callersCase(
    'on a disk, one caller alone: enqueued',
    1,
    false,
    { full: 2_000, quick: 30, of: 'tasks' },
    'No server runs. The raw append is one append and one sync.',
  ),
];

const OPEN = 'open';
const MEMORY = 'memory';
const DISK = 'disk';
const CHILD = new URL('child.ts', import.meta.url);

async function bytesIn(folder: string): Promise<number> {
  const sizes = (await readdir(folder)).map(async (name) => (await stat(`${folder}/${name}`)).size);
  return (await Promise.all(sizes)).reduce((sum, size) => sum + size, 0);
}

export const openCase = scenario({
  name: 'on a disk: open a folder with a million waiting tasks',
  note:
    'In a process of its own that does nothing else. Memory: live bytes after a forced collection, the payload of 64 bytes ' +
    'included.',
  size: { full: 1_000_000, quick: 2_000, of: 'tasks' },
  rounds: 3,
  metrics: [metric(OPEN, 'ms'), metric(MEMORY, 'bytes/task'), metric(DISK, 'bytes/task')],
  contestants: [
    ours<Scenario>('ours', (size) =>
      withFolder(async (folder) => {
        await inChild<typeof fill>(CHILD, 'fill', folder, size);
        const disk = await bytesIn(folder);
        const { openMs, bytes, waiting } = await inChild<typeof openInChild>(CHILD, 'open', folder);
        return {
          values: { [OPEN]: openMs, [MEMORY]: bytes / size, [DISK]: disk / size },
          problem: expectCount(waiting, size, 'tasks wait'),
        };
      }),
    ),
  ],
});

/** Runs something. @returns the longest time between two turns of the event loop meanwhile, in milliseconds. */
async function longestStallMs(action: () => Promise<unknown>): Promise<number> {
  let longestMs = 0;
  let lastMs = performance.now();
  let isOver = false;
  const turn = (): void => {
    const nowMs = performance.now();
    longestMs = Math.max(longestMs, nowMs - lastMs);
    lastMs = nowMs;
    if (!isOver) setImmediate(turn);
  };
  setImmediate(turn);
  try {
    await action();
  } finally {
    isOver = true;
  }
  return longestMs;
}

const STALL = 'longest stall';
const REMOVED = 'files removed';
const BATCH = 1_000;
const HOUR_MS = 3_600_000;
/** Scheduled tasks, as a share of those that are processed meanwhile: compaction writes them again. */
const SCHEDULED_SHARE = 0.25;
/** Size of a file: a few hundred of them are written. In bytes, for each task that is processed. */
const FILE_BYTES_A_TASK = 5;
/** The minimum of the option. */
const LEAST_FILE_BYTES = 4_096;
const ONE_FILE_BYTES = 2 ** 33;

async function segmentsIn(folder: string): Promise<string[]> {
  return (await readdir(folder)).filter((name) => name.endsWith('.segment'));
}

async function schedule({ client }: OurTasks, count: number): Promise<void> {
  for (let added = 0; added < count; added += BATCH) {
    const batch = Array.from(
      { length: Math.min(BATCH, count - added) },
      () => new Task('later', payloadOf(0)),
    );
    await client.enqueueMany(batch, { processInMs: HOUR_MS });
  }
}

async function stalls(
  tasks: OurTasks,
  folder: string,
  size: number,
  isCompacted: boolean,
): Promise<Measurement> {
  const scheduled = Math.ceil(size * SCHEDULED_SHARE);
  await schedule(tasks, scheduled);
  const calls = new Callers((payload) => tasks.client.enqueue(new Task('work', payload)));
  await tasks.start(CONCURRENCY, undefined, (task) => calls.onDone(task.json<Payload>()));
  await calls.run(Math.ceil(size * WARM_UP_SHARE), CALLERS, true);
  const startMs = performance.now();
  const stallMs = await longestStallMs(() => calls.run(size, CALLERS, true));
  const elapsedMs = performance.now() - startMs;
  const numbers = (await segmentsIn(folder)).map((name) => Number(name.split('.')[1]));
  const removed = Math.max(...numbers) - numbers.length;
  const wrong = expectCount(await tasks.count('scheduled'), scheduled, 'tasks are scheduled');
  return {
    values: { [STALL]: stallMs, [TIME]: (elapsedMs * US_PER_MS) / size, [REMOVED]: removed },
    problem:
      calls.problem ?? wrong ?? (removed > 0 === isCompacted ? undefined : `${removed} files were removed`),
  };
}

function stallsOf(isCompacted: boolean): Scenario {
  return (size) =>
    withFolder(async (folder) => {
      const maxBytesPerFile = isCompacted
        ? Math.max(size * FILE_BYTES_A_TASK, LEAST_FILE_BYTES)
        : ONE_FILE_BYTES;
      const options = { dataPath: folder, durability: 'interval', maxBytesPerFile } as const;
      return closing(await OurTasks.open(options), (tasks) => stalls(tasks, folder, size, isCompacted));
    });
}

export const compactionCase = scenario({
  name: 'on a disk: stalls by compaction, 100 callers',
  note:
    'A stall is the longest time between two turns of the event loop, measured by a chain of setImmediate, pauses of the ' +
    'collector included. A quarter as many scheduled tasks wait meanwhile, and are written again. Durability is interval.',
  size: { full: 200_000, quick: 3_000, of: 'tasks' },
  metrics: [metric(STALL, 'ms'), metric(TIME, US_A_TASK), aside(REMOVED)],
  contestants: [
    baseline('one large file', stallsOf(false), 'which is never compacted.'),
    ours('ours', stallsOf(true)),
  ],
});
