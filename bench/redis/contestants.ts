/** BullMQ, bee-queue, asynq and ours. */
import BeeQueue from 'bee-queue';
import { Queue, Worker } from 'bullmq';
import { RedisBroker } from 'escapement/tasks/redis';
import { baseline, ours, rival } from '../lib/part.ts';
import { asynq } from './asynq.ts';
import { OurTasks, taskQueue } from '../tasks/our-tasks.ts';
import { inProcess, type CountedQueue, type Payload, type RedisAddress } from './contestant.ts';
import type { RedisContestant } from './contestant.ts';

const QUEUE = 'default';
const TYPE = 'work';
/** Ended jobs are not kept; an option of the worker, so that not every job carries it. */
const KEEP_NONE = { count: 0 };

export function openBullmq(connection: RedisAddress): CountedQueue {
  const queue = new Queue<Payload>(QUEUE, { connection, skipMetasUpdate: true });
  let worker: Worker<Payload> | undefined;
  return {
    add: (payload) => queue.add(TYPE, payload),
    addMany: (payloads) => queue.addBulk(payloads.map((data) => ({ name: TYPE, data }))),
    work: async (concurrency, handle, onDone) => {
      const process = ({ data }: { readonly data: Payload }): Promise<void> => {
        handle?.(data);
        return Promise.resolve();
      };
      const options = { connection, concurrency, removeOnComplete: KEEP_NONE, removeOnFail: KEEP_NONE };
      worker = new Worker<Payload>(QUEUE, process, options);
      if (onDone !== undefined) worker.on('completed', ({ data }) => onDone(data));
      await worker.waitUntilReady();
    },
    left: async () => Object.values(await queue.getJobCounts()).reduce((sum, count) => sum + count, 0),
    close: async () => {
      await worker?.close();
      await queue.close();
    },
  };
}

export const bullmq: RedisContestant = baseline(
  'bullmq',
  inProcess(openBullmq),
  'Queue.add, Queue.addBulk; one Worker; ended jobs are not kept, which is an option of the Worker.',
);

/** The default of bee-queue. */
const STALL_INTERVAL_MS = 5_000;
/** As the documentation of bee-queue advises: otherwise jobs of lost workers are never found. */
const STALL_CHECK_MS = STALL_INTERVAL_MS / 2;

const LEAN = {
  getEvents: false,
  sendEvents: false,
  storeJobs: false,
  activateDelayedJobs: false,
  removeOnSuccess: true,
  removeOnFailure: true,
  stallInterval: STALL_INTERVAL_MS,
};

export const beeQueue: RedisContestant = rival(
  'bee-queue',
  inProcess(async (redis) => {
    const producer = new BeeQueue<Payload>(QUEUE, { ...LEAN, redis, isWorker: false });
    let worker: BeeQueue<Payload> | undefined;
    await producer.ready();
    return {
      add: (payload) => producer.createJob(payload).save(),
      addMany: async (payloads) => {
        const failed = await producer.saveAll(payloads.map((payload) => producer.createJob(payload)));
        for (const error of failed.values()) throw error;
      },
      work: async (concurrency, handle) => {
        worker = new BeeQueue<Payload>(QUEUE, { ...LEAN, redis });
        await worker.ready();
        await worker.checkStalledJobs(STALL_CHECK_MS);
        worker.process(concurrency, ({ data }) => {
          handle?.(data);
          return Promise.resolve();
        });
      },
      close: async () => {
        await worker?.close();
        await producer.close();
      },
    };
  }),
  'Job.save, Queue.saveAll; no events, no delayed jobs, ended jobs are not kept. One queue for each side, as its ' +
    'documentation advises.',
);

export const OURS = 'escapement';

const ourTasks: RedisContestant = ours(
  OURS,
  inProcess(({ host, port }) => taskQueue(new OurTasks(new RedisBroker({ url: `redis://${host}:${port}` })))),
  'RedisBroker; Client.enqueue, Client.enqueueMany; one Server.',
);

export const CONTESTANTS: readonly RedisContestant[] = [bullmq, beeQueue, asynq, ourTasks];
