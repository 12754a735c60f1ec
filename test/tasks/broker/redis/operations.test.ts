import { RedisBroker } from 'escapement/tasks/redis';
import type { BrokerOperation } from 'escapement/testing';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { failure, newTask, QUEUE } from '../../../conformance/broker/support.ts';

const TASK = newTask({ id: 'a' });
const LEASED = { message: TASK.message, epoch: 1, recoveries: 0 };
const LIMITS = { graceMs: 0, maxDelayMs: 0, maxSize: 1 };
const PAGE = { page: 1, size: 1 };
const SERVER = {
  ...{ id: 's', host: 'h', pid: 7, concurrency: 1, queues: { [QUEUE]: 1 }, strictPriority: false },
  ...{ status: 'active' as const, startedAtMs: 1, workers: [] },
};

/** Each operation of a RedisBroker, with arguments that are valid. */
const OPERATIONS: Record<BrokerOperation | 'info' | 'redisInfo', (broker: RedisBroker) => Promise<unknown>> =
  {
    ping: (broker) => broker.ping(),
    info: (broker) => broker.info(),
    redisInfo: (broker) => broker.redisInfo(),
    enqueue: (broker) => broker.enqueue(TASK),
    enqueueMany: async (broker) => {
      const [outcome] = await broker.enqueueMany([TASK]);
      if (outcome?.status === 'rejected') throw outcome.reason;
    },
    enqueueTick: (broker) => broker.enqueueTick(TASK, { entryKey: 'e', atMs: 1 }),
    lastTickMs: (broker) => broker.lastTickMs(QUEUE, 'e'),
    dequeue: (broker) => broker.dequeue(QUEUE, 1, 1),
    complete: (broker) => broker.complete(LEASED),
    retry: (broker) => broker.retry(LEASED, failure(), 1),
    archive: (broker) => broker.archive(LEASED, failure()),
    release: (broker) => broker.release(LEASED),
    discard: (broker) => broker.discard(LEASED),
    extendLeases: (broker) => broker.extendLeases([LEASED], 1),
    writeResult: (broker) => broker.writeResult(LEASED, new Uint8Array(1)),
    writeProgress: (broker) => broker.writeProgress(LEASED, '1'),
    forward: (broker) => broker.forward([QUEUE]),
    recover: (broker) => broker.recover([QUEUE], 0, 1),
    deleteExpired: (broker) => broker.deleteExpired([QUEUE], 1),
    groups: (broker) => broker.groups(QUEUE),
    takeGroup: (broker) => broker.takeGroup(QUEUE, 'g', LIMITS, 1),
    replaceSet: (broker) => broker.replaceSet({ id: 's', queue: QUEUE, group: 'g', messages: [] }, TASK),
    reclaimSets: (broker) => broker.reclaimSets([QUEUE]),
    subscribe: (broker) => broker.subscribe({ work: () => undefined }, [QUEUE]),
    cancel: (broker) => broker.cancel({ taskId: 'a', queue: QUEUE, outcome: 'retry' }, 1),
    announceServer: (broker) => broker.announceServer(() => SERVER, 1),
    withdrawServer: (broker) => broker.withdrawServer('s'),
    servers: (broker) => broker.servers(),
    announceScheduler: (broker) => broker.announceScheduler('s', () => [], 1),
    withdrawScheduler: (broker) => broker.withdrawScheduler('s'),
    scheduleEntries: (broker) => broker.scheduleEntries(),
    recordEnqueueEvent: (broker) => broker.recordEnqueueEvent('e', { taskId: 'a', atMs: 1 }),
    enqueueEvents: (broker) => broker.enqueueEvents('e', PAGE),
    queues: (broker) => broker.queues(),
    queueStats: (broker) => broker.queueStats(QUEUE),
    history: (broker) => broker.history(QUEUE, 1),
    task: (broker) => broker.task(QUEUE, 'a'),
    tasks: (broker) => broker.tasks(QUEUE, 'pending', PAGE),
    change: (broker) => broker.change(QUEUE, { id: 'a' }, 'delete'),
    updatePayload: (broker) => broker.updatePayload(QUEUE, 'a', new Uint8Array(1)),
    repair: (broker) => broker.repair(QUEUE, { apply: false }),
    pause: (broker) => broker.pause(QUEUE),
    resume: (broker) => broker.resume(QUEUE),
    removeQueue: (broker) => broker.removeQueue(QUEUE, { force: true }),
  };

let broker: RedisBroker;

beforeEach(() => {
  broker = new RedisBroker({ url: 'redis://127.0.0.1:1', timeoutMs: 30 });
});
afterEach(() => broker.close());

describe.each(Object.entries(OPERATIONS))('RedisBroker.%s', (operation, run) => {
  it('the operation names itself in its error when Redis cannot be reached', async () => {
    await expect(run(broker)).rejects.toMatchObject({
      code: 'ERR_BROKER_UNAVAILABLE',
      op: `RedisBroker.${operation}`,
    });
  });

  it('the operation names itself in its error when the broker is closed while it waits', async () => {
    const running = run(broker);
    await broker.close();
    await expect(running).rejects.toMatchObject({
      code: 'ERR_BROKER_CLOSED',
      op: `RedisBroker.${operation}`,
    });
  });

  it('the operation names itself in its error when the broker is closed', async () => {
    await broker.close();
    await expect(run(broker)).rejects.toMatchObject({
      code: 'ERR_BROKER_CLOSED',
      op: `RedisBroker.${operation}`,
    });
  });
});
