/** Tasks in a folder: 100 callers and one, opening a folder with a million tasks, and the stalls of compaction. */
import { readdir, stat } from 'node:fs/promises';
import { performance } from 'node:perf_hooks';
import { Task } from 'escapement/tasks';
import { closing, withFolder } from '../lib/folder.ts';
import type { Scenario } from '../lib/kinds.ts';
import { spentBy } from '../lib/machine.ts';
import { inChild } from '../lib/memory.ts';
import { baseline, contest, expectCount, HOUR_MS, ours, TIME, US_PER_MS } from '../lib/part.ts';
import type { Contestant, Measurement } from '../lib/part.ts';
import { batches, callBy, WARM_UP_SHARE } from '../lib/work.ts';
import { payloadOf, type Payload } from '../redis/contestant.ts';
import type { fill, open as openInChild } from './child.ts';
import { CONCURRENCY, DURABLE, type DurableQueue, type OpenDurable } from './durable-queues.ts';
import { OurTasks, taskQueue } from './our-tasks.ts';

const CHILD = new URL('child.ts', import.meta.url);
const CALLERS = 100;

/** Callers that enqueue tasks one after the other. */
class Callers {
  readonly #queue: DurableQueue;
  /** By the number of a task that is not done. */
  readonly #waiting = new Map<number, () => void>();
  called = 0;
  problem: string | undefined;

  constructor(queue: DurableQueue) {
    this.#queue = queue;
  }

  readonly onDone = ({ number }: Payload): void => {
    const resolve = this.#waiting.get(number);
    if (resolve === undefined) this.problem ??= `task ${number} is unknown, or was done twice`;
    this.#waiting.delete(number);
    resolve?.();
  };

  /** @param waits - whether a caller waits until its task is done, or only until it is enqueued. */
  async run(count: number, callers: number, waits: boolean): Promise<void> {
    const from = this.called;
    this.called += count;
    await callBy(callers, from, this.called, async (number) => {
      const payload = payloadOf(number);
      const done = waits ? this.#done(payload) : undefined;
      await this.#queue.add(payload);
      await done;
    });
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

/** @param waits - whether the tasks are processed. */
export function calls(callers: number, waits: boolean): Contestant<Scenario>[] {
  const measure = (open: OpenDurable, folder: string, size: number): Promise<Measurement> =>
    closing(open(folder), async (queue) => {
      const all = new Callers(queue);
      if (waits) await queue.work(CONCURRENCY, undefined, all.onDone);
      const startMs = performance.now();
      do {
        await all.run(Math.ceil(size * WARM_UP_SHARE), callers, waits);
      } while (performance.now() - startMs < WARM_UP_MS && all.called < size * MOST_WARM_UP);
      const { elapsedMs, cpuUs } = await spentBy(() => all.run(size, callers, waits));
      const wrong = expectCount(await queue.left(), waits ? 0 : all.called, 'tasks are left');
      return {
        values: { [TIME]: (elapsedMs * US_PER_MS) / size, cpu: cpuUs / size },
        problem: all.problem ?? wrong,
      };
    });
  return contest(DURABLE, (open) => (size) => withFolder((folder) => measure(open, folder, size)));
}

async function bytesIn(folder: string): Promise<number> {
  const sizes = (await readdir(folder)).map(async (name) => (await stat(`${folder}/${name}`)).size);
  return (await Promise.all(sizes)).reduce((sum, size) => sum + size, 0);
}

export const openings: readonly Contestant<Scenario>[] = [
  ours('ours', (size) =>
    withFolder(async (folder) => {
      await inChild<typeof fill>(CHILD, 'fill', folder, size);
      const disk = await bytesIn(folder);
      const { openMs, bytes, waiting } = await inChild<typeof openInChild>(CHILD, 'open', folder);
      return {
        values: { open: openMs, memory: bytes / size, disk: disk / size },
        problem: expectCount(waiting, size, 'tasks wait'),
      };
    }),
  ),
];

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

/** Scheduled tasks, as a share of those that are processed meanwhile: compaction writes them again. */
const SCHEDULED_SHARE = 0.25;
/** Size of a file: a few hundred of them are written. In bytes, for each task that is processed. */
const FILE_BYTES_A_TASK = 5;
/** The minimum of the option. */
const LEAST_FILE_BYTES = 4_096;
const ONE_FILE_BYTES = 2 ** 33;

async function stalls(
  tasks: OurTasks,
  folder: string,
  size: number,
  isCompacted: boolean,
): Promise<Measurement> {
  const scheduled = Math.ceil(size * SCHEDULED_SHARE);
  for (const numbers of batches(scheduled)) {
    const batch = numbers.map(() => new Task('later', payloadOf(0)));
    await tasks.client.enqueueMany(batch, { processInMs: HOUR_MS });
  }
  const queue = taskQueue(tasks);
  const all = new Callers(queue);
  await queue.work(CONCURRENCY, undefined, all.onDone);
  await all.run(Math.ceil(size * WARM_UP_SHARE), CALLERS, true);
  let stallMs = 0;
  const { elapsedMs } = await spentBy(async () => {
    stallMs = await longestStallMs(() => all.run(size, CALLERS, true));
  });
  const segments = (await readdir(folder)).filter((name) => name.endsWith('.segment'));
  const removed = Math.max(...segments.map((name) => Number(name.split('.')[1]))) - segments.length;
  const wrong = expectCount(await tasks.count('scheduled'), scheduled, 'tasks are scheduled');
  return {
    values: { 'longest stall': stallMs, [TIME]: (elapsedMs * US_PER_MS) / size, 'files removed': removed },
    problem:
      all.problem ?? wrong ?? (removed > 0 === isCompacted ? undefined : `${removed} files were removed`),
  };
}

function stallsOf(isCompacted: boolean): Scenario {
  return (size) =>
    withFolder((folder) => {
      const maxBytesPerFile = isCompacted
        ? Math.max(size * FILE_BYTES_A_TASK, LEAST_FILE_BYTES)
        : ONE_FILE_BYTES;
      const tasks = OurTasks.open({ dataPath: folder, durability: 'interval', maxBytesPerFile });
      return closing(tasks, (opened) => stalls(opened, folder, size, isCompacted));
    });
}

export const compaction = [
  baseline('one large file', stallsOf(false), 'which is never compacted.'),
  ours('ours', stallsOf(true)),
];
