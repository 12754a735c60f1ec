/** Tasks in bursts, from the call that enqueues to the end of the last handler. */
import { TIME } from '../lib/measurement.ts';
import type { BulkCase, BulkRun } from '../lib/part.ts';
import { fastqAsync, fastqPromise, fastqSync } from '../workqueue/fastq-queues.ts';
import { Jobs } from '../workqueue/jobs.ts';
import { keysUpTo } from '../workqueue/keys.ts';
import { pQueue } from '../workqueue/other-queues.ts';
import { runWithRetries } from '../workqueue/our-queues.ts';
import {
  enqueueAsync,
  enqueueManyAsync,
  enqueueManySync,
  enqueueSync,
  newTaskSync,
  OURS,
} from './our-tasks.ts';
import { contest, type OpenTaskQueue, type TaskQueueKind } from './task-queue.ts';

const BURST = 1_000;
const CONCURRENCY = 100;
/** 200 000 tasks a second. */
const MOST_NS = 5_000;

/** Beside tasks it is another queue of jobs. */
const rateLimitingQueue: TaskQueueKind = { ...runWithRetries, name: 'RateLimitingQueue', role: 'rival' };

function openWith(open: OpenTaskQueue): (size: number) => Promise<BulkRun> {
  return async (size) => {
    const jobs = new Jobs();
    const queue = await open(jobs, CONCURRENCY);
    const keys = keysUpTo(Math.min(BURST, size));
    const bursts = Math.max(Math.round(size / keys.length), 1);
    return {
      run: async () => {
        for (let burst = 0; burst < bursts; burst++) {
          const allDone = jobs.expect(keys);
          await queue.addAll(keys);
          await allDone;
        }
        return bursts * keys.length;
      },
      check: () => jobs.check(),
      close: () => queue.close(),
    };
  };
}

function burstCase(name: string, kinds: readonly TaskQueueKind[]): BulkCase {
  return {
    kind: 'bulk',
    name: `enqueued to done, bursts of a thousand, 100 at once: ${name}`,
    size: { full: 200_000, quick: 5_000, of: 'tasks' },
    contestants: contest(kinds, openWith),
    targets: [{ kind: 'limit', contestant: OURS, metric: TIME, atMost: MOST_NS }],
  };
}

export const burstCases: readonly BulkCase[] = [
  burstCase('the handler returns', [fastqSync, pQueue, enqueueSync, newTaskSync, enqueueManySync]),
  burstCase('the handler is async', [
    fastqAsync,
    fastqPromise,
    pQueue,
    rateLimitingQueue,
    enqueueAsync,
    enqueueManyAsync,
  ]),
];
