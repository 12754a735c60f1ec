/** Tasks in bursts from enqueued to done, and each half alone: enqueued without a server, and processed when all wait. */
import type { Handler } from 'escapement/tasks';
import type { OpenBulk } from '../lib/kinds.ts';
import { baseline, contest, expectCount, ours, rival, type Contestant } from '../lib/part.ts';
import { batches } from '../lib/work.ts';
import { Jobs, keysUpTo, type OpenQueue, type PausableQueue, type Work } from '../workqueue/jobs.ts';
import { fastqAsync, fastqSync, openFastq, openPQueue, openRetrying, pQueue } from '../workqueue/queues.ts';
import { burstsOn, type BurstQueue, type OpenBurstQueue } from '../workqueue/runs.ts';
import { asyncHandlerOf, handlerOf, oneByOne, OurTasks, together } from './our-tasks.ts';
import type { EnqueueAll } from './our-tasks.ts';

const BURST = 1_000;
const CONCURRENCY = 100;
const NOTE = 'the caller waits until the broker has the whole burst.';
const MANY_NOTE = 'the burst in one call.';

function served(makeHandler: (jobs: Work) => Handler, enqueueAll: EnqueueAll): OpenBurstQueue {
  return async (jobs, concurrency) => {
    const tasks = await OurTasks.open();
    await tasks.start(concurrency, makeHandler(jobs));
    return { addAll: (keys) => enqueueAll(tasks.client, keys), close: () => tasks.close() };
  };
}

const BURSTS: Record<'sync' | 'async', readonly Contestant<OpenBurstQueue>[]> = {
  sync: [
    fastqSync,
    pQueue,
    ours('ours: enqueue', served(handlerOf, oneByOne), NOTE),
    ours('ours: enqueueMany', served(handlerOf, together), MANY_NOTE),
  ],
  async: [
    fastqAsync,
    pQueue,
    rival('RateLimitingQueue', openRetrying, 'run of our queue that retries failed jobs; none fails.'),
    ours('ours: enqueue', served(asyncHandlerOf, oneByOne), NOTE),
    ours('ours: enqueueMany', served(asyncHandlerOf, together), MANY_NOTE),
  ],
};

export function bursts(queues: keyof typeof BURSTS): Contestant<OpenBulk>[] {
  return burstsOn(BURSTS[queues], CONCURRENCY, BURST);
}

/** A queue whose workers wait for `start`. All but `close` may return promises. */
interface PausedQueue extends BurstQueue {
  start(): unknown;
  waiting(): number | Promise<number>;
}

type OpenPaused = (jobs: Work) => PausedQueue | Promise<PausedQueue>;

function paused(open: OpenQueue<PausableQueue>): OpenPaused {
  return (jobs) => {
    const queue = open(jobs, CONCURRENCY);
    queue.pause();
    return queue;
  };
}

function pausedTasks(enqueueAll: EnqueueAll): OpenPaused {
  return async (jobs) => {
    const tasks = await OurTasks.open();
    return {
      addAll: (keys) => enqueueAll(tasks.client, keys),
      start: () => tasks.start(CONCURRENCY, handlerOf(jobs)),
      waiting: () => tasks.count('pending'),
      close: () => tasks.close(),
    };
  };
}

/** The same keys a thousand at a time, as tasks arrive. */
function burstsOf(size: number): readonly (readonly string[])[] {
  return [...batches(size, BURST)].map(({ length }) => keysUpTo(length));
}

async function fill(queue: PausedQueue, size: number): Promise<void> {
  for (const keys of burstsOf(size)) await queue.addAll(keys);
}

const OTHERS = [baseline('fastq', paused(openFastq)), rival('p-queue', paused(openPQueue))];

export const enqueued = contest<OpenPaused, OpenBulk>(
  [...OTHERS, ours('ours: enqueue', pausedTasks(oneByOne)), ours('ours: enqueueMany', pausedTasks(together))],
  (open) => async (size) => {
    const queue = await open(new Jobs());
    let waiting = 0;
    return {
      run: async () => {
        await fill(queue, size);
        waiting = await queue.waiting();
      },
      check: () => expectCount(waiting, size, 'tasks wait'),
      close: () => queue.close(),
    };
  },
);

export const processed = contest<OpenPaused, OpenBulk>(
  [...OTHERS, ours('ours', pausedTasks(together))],
  (open) => async (size) => {
    const jobs = new Jobs();
    const queue = await open(jobs);
    const allDone = jobs.expect(burstsOf(size).flat());
    await fill(queue, size);
    return {
      run: async () => {
        await queue.start();
        await allDone;
      },
      check: () => jobs.check(),
      close: () => queue.close(),
    };
  },
);
