/** BullMQ, bee-queue, asynq and ours. */
import BeeQueue from 'bee-queue';
import { Queue, Worker } from 'bullmq';
import { RedisBroker } from 'escapement/tasks/redis';
import { baseline, ours, rival, type Contestant } from '../lib/part.ts';
import { OurTasks, taskQueue } from '../tasks/our-tasks.ts';
import { openAsynq } from './asynq.ts';
import { inProcess, type CountedQueue, type OpenOn, type Payload, type RedisAddress } from './contestant.ts';
import type { TaskQueue } from './contestant.ts';

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

const openBeeQueue = async (redis: RedisAddress): Promise<TaskQueue> => {
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
};

/** What they use is in the remarks of the part. */
export function contestants(): Contestant<OpenOn>[] {
  return [
    baseline('bullmq', inProcess(openBullmq)),
    rival('bee-queue', inProcess(openBeeQueue)),
    rival('asynq', openAsynq()),
    ours(
      'escapement',
      inProcess(({ host, port }) =>
        taskQueue(new OurTasks(new RedisBroker({ url: `redis://${host}:${port}` }))),
      ),
    ),
  ];
}
