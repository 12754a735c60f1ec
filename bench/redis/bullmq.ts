import { Queue, Worker } from 'bullmq';
import type { RedisContestant } from './contestant.ts';
import { inProcess } from './in-process.ts';
import type { Payload } from './payload.ts';

const QUEUE = 'default';
const NAME = 'work';
/** Nothing is kept of a job that has ended; said once, by the worker, and not in every job. */
const KEEP_NONE = { count: 0 };

/** The baseline. */
export const bullmq: RedisContestant = {
  name: 'bullmq',
  role: 'baseline',
  note: 'Queue.add, Queue.addBulk; one Worker; nothing is kept of jobs that have ended, which is said to the Worker.',
  open: inProcess((connection) => {
    const queue = new Queue<Payload>(QUEUE, { connection, skipMetasUpdate: true });
    let worker: Worker<Payload> | undefined;
    return {
      add: (payload) => queue.add(NAME, payload),
      addMany: (payloads) => queue.addBulk(payloads.map((data) => ({ name: NAME, data }))),
      work: async (concurrency, handle) => {
        const process = ({ data }: { readonly data: Payload }): Promise<void> => {
          handle(data);
          return Promise.resolve();
        };
        const options = { connection, concurrency, removeOnComplete: KEEP_NONE, removeOnFail: KEEP_NONE };
        worker = new Worker<Payload>(QUEUE, process, options);
        await worker.waitUntilReady();
      },
      close: async () => {
        await worker?.close();
        await queue.close();
      },
    };
  }),
};
