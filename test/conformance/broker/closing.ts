import type { Broker, LeasedTask } from 'escapement/tasks';
import type { BrokerOperation } from 'escapement/testing';
import { expect } from 'vitest';
import { caseWith, failure, LONG_MS, newTask, QUEUE, SERVER, take, type BrokerFactory } from './support.ts';

const page = { page: 1, size: 1 };
const set = { id: 'set', queue: QUEUE, group: 'g', messages: [] };
const limits = { graceMs: 1, maxDelayMs: 0, maxSize: 0 };

/** A call of every operation, with valid arguments. */
export const CALLS: Readonly<
  Record<BrokerOperation, (broker: Broker, task: LeasedTask) => Promise<unknown>>
> = {
  ping: (broker) => broker.ping(),
  enqueue: (broker) => broker.enqueue(newTask()),
  enqueueMany: async (broker) => {
    const [outcome] = await broker.enqueueMany([newTask()]);
    if (outcome?.status === 'rejected') throw outcome.reason;
  },
  enqueueTick: (broker) => broker.enqueueTick(newTask(), { entryKey: 'entry', atMs: 1_000 }),
  lastTickMs: (broker) => broker.lastTickMs(QUEUE, 'entry'),
  dequeue: (broker) => broker.dequeue(QUEUE, 1, LONG_MS),
  complete: (broker, task) => broker.complete(task),
  retry: (broker, task) => broker.retry(task, failure(), 0),
  archive: (broker, task) => broker.archive(task, failure()),
  release: (broker, task) => broker.release(task),
  discard: (broker, task) => broker.discard(task),
  extendLeases: (broker, task) => broker.extendLeases([task], LONG_MS),
  writeResult: (broker, task) => broker.writeResult(task, Uint8Array.of(1)),
  writeProgress: (broker, task) => broker.writeProgress(task, '1'),
  forward: (broker) => broker.forward([QUEUE]),
  recover: (broker) => broker.recover([QUEUE], 0, LONG_MS),
  deleteExpired: (broker) => broker.deleteExpired([QUEUE], 1),
  groups: (broker) => broker.groups(QUEUE),
  takeGroup: (broker) => broker.takeGroup(QUEUE, 'g', limits, LONG_MS),
  replaceSet: (broker) => broker.replaceSet(set, newTask()),
  reclaimSets: (broker) => broker.reclaimSets([QUEUE]),
  subscribe: (broker) => broker.subscribe({ work: () => undefined }, [QUEUE]),
  cancel: (broker) => broker.cancel({ taskId: 'a', queue: QUEUE, outcome: 'retry' }, 1),
  announceServer: (broker) => broker.announceServer(() => SERVER, LONG_MS),
  withdrawServer: (broker) => broker.withdrawServer(SERVER),
  servers: (broker) => broker.servers(),
  announceScheduler: (broker) => broker.announceScheduler('a', () => [], LONG_MS),
  withdrawScheduler: (broker) => broker.withdrawScheduler('a'),
  scheduleEntries: (broker) => broker.scheduleEntries(),
  recordEnqueueEvent: (broker) => broker.recordEnqueueEvent('entry', { taskId: 'a', atMs: 1_000 }),
  enqueueEvents: (broker) => broker.enqueueEvents('entry', page),
  queues: (broker) => broker.queues(),
  queueStats: (broker) => broker.queueStats(QUEUE),
  history: (broker) => broker.history(QUEUE, 1),
  limits: (broker) => broker.limits(QUEUE),
  setLimits: (broker) => broker.setLimits(QUEUE, { concurrency: 1 }),
  keys: (broker) => broker.keys(QUEUE, page),
  task: (broker) => broker.task(QUEUE, 'a'),
  tasks: (broker) => broker.tasks(QUEUE, 'pending', page),
  scan: (broker) => broker.scan(QUEUE, ['pending'], 1),
  change: (broker) => broker.change(QUEUE, { id: 'a' }, 'delete'),
  updatePayload: (broker) => broker.updatePayload(QUEUE, 'a', Uint8Array.of(1)),
  repair: (broker) => broker.repair(QUEUE, { apply: false }),
  pause: (broker) => broker.pause(QUEUE),
  resume: (broker) => broker.resume(QUEUE),
  removeQueue: (broker) => broker.removeQueue(QUEUE, { force: true }),
};

export function describeClosing(make: BrokerFactory): void {
  const it = caseWith(make);

  it('a closed broker notifies its listeners once that it is closed, and of nothing else', async (broker) => {
    const heard: string[] = [];
    await broker.subscribe({ closed: () => heard.push('closed'), work: () => heard.push('work') }, [QUEUE]);
    const enqueued = broker.enqueue(newTask()).catch(() => undefined);
    await broker.close();
    await broker.close();
    await enqueued;
    expect(heard).toEqual(['closed']);
  });

  it('a broker that is closed again resolves when it is closed, not before', async (broker) => {
    let isClosed = false;
    await broker.ping();
    const first = broker.close().then(() => {
      isClosed = true;
    });
    await broker.close();
    expect(isClosed).toBe(true);
    await first;
  });

  it('a closed broker rejects every operation, which its error names, and can be closed again', async (broker) => {
    await broker.enqueue(newTask());
    const task = await take(broker);
    const subscription = await broker.subscribe({}, [QUEUE]);
    await expect(broker.ping()).resolves.toBeUndefined();
    await broker.close();
    for (const [operation, call] of Object.entries(CALLS)) {
      const op = expect.stringMatching(`^\\w+\\.${operation}$`) as string;
      await expect(call(broker, task)).rejects.toMatchObject({ code: 'ERR_BROKER_CLOSED', op });
    }
    await broker.close();
    await subscription.close();
  });
}
