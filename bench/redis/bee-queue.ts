import BeeQueue from 'bee-queue';
import type { RedisContestant } from './contestant.ts';
import { inProcess } from './in-process.ts';
import type { Payload } from './payload.ts';

const QUEUE = 'default';
/** Its default. */
const STALL_INTERVAL_MS = 5_000;
/** As its documentation advises: without it, nobody looks for jobs of workers that are gone. */
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

export const beeQueue: RedisContestant = {
  name: 'bee-queue',
  role: 'rival',
  note:
    'Job.save, Queue.saveAll; sends no events, knows no delayed jobs, keeps nothing of jobs that have ended. A queue is made for ' +
    'each side, as its documentation advises.',
  open: inProcess(async (redis) => {
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
          handle(data);
          return Promise.resolve();
        });
      },
      close: async () => {
        await worker?.close();
        await producer.close();
      },
    };
  }),
};
