import type { Broker, BrokerListener } from 'escapement/tasks';
import { expect } from 'vitest';
import { until } from '../../until.ts';
import {
  caseWith,
  catchUp,
  expectCode,
  failure,
  newTask,
  putInto,
  QUEUE,
  take,
  takeAll,
  takeSet,
  type BrokerFactory,
} from './support.ts';

const QUEUES = [QUEUE, 'other'];

/** Listens to everything. */
function recorder(): { heard: string[]; listener: BrokerListener } {
  const heard: string[] = [];
  const listener: BrokerListener = {
    work: (queue) => heard.push(`work ${queue}`),
    leaseExpired: (queue) => heard.push(`leaseExpired ${queue}`),
    grouped: (queue, group) => heard.push(`grouped ${queue} ${group}`),
    settled: (queue, id) => heard.push(`settled ${queue} ${id}`),
    progressed: (queue, id) => heard.push(`progressed ${queue} ${id}`),
  };
  return { heard, listener };
}

/** @returns what a new listener of the queues hears. */
async function record(broker: Broker): Promise<string[]> {
  const { heard, listener } = recorder();
  await broker.subscribe(listener, QUEUES);
  return heard;
}

/** Operations that end a task, so that callers that wait for it can continue. */
const SETTLING: Record<string, (broker: Broker) => Promise<unknown>> = {
  'is completed': async (broker) => broker.complete(await take(broker)),
  'is archived': async (broker) => broker.archive(await take(broker), failure()),
  'is discarded': async (broker) => broker.discard(await take(broker)),
  'is deleted': (broker) => broker.change(QUEUE, { id: 'a' }, 'delete'),
  'is archived by hand': (broker) => broker.change(QUEUE, { id: 'a' }, 'archive'),
  'is deleted with all others': (broker) => broker.change(QUEUE, { state: 'pending' }, 'delete'),
};

export function describeNotifications(make: BrokerFactory): void {
  const it = caseWith(make);

  it('a listener is notified that there is work', async (broker) => {
    const heard = await record(broker);
    await broker.enqueue(newTask());
    await broker.enqueue({ ...newTask({ queue: 'other' }), isNext: true });
    const lines = [`work ${QUEUE}`, 'work other'];
    await until('the listener is notified', () => lines.every((line) => heard.includes(line)));
  });

  it('a listener is notified that a task is released, and that a queue is resumed', async (broker) => {
    await broker.enqueue(newTask());
    const task = await take(broker);
    const heard = await record(broker);
    await broker.release(task);
    await until('the listener is notified', () => heard.includes(`work ${QUEUE}`));
    await broker.pause(QUEUE);
    heard.length = 0;
    await broker.resume(QUEUE);
    await until('the listener is notified', () => heard.includes(`work ${QUEUE}`));
  });

  it('a listener is notified that a queue is resumed whose keys have got their tokens meanwhile', async (broker, time) => {
    await broker.setLimits(QUEUE, { perKey: { rate: { tasks: 1, perMs: 1_000 } } });
    await broker.enqueueMany([newTask({ key: 'a' }), newTask({ key: 'a' })]);
    await take(broker);
    await broker.pause(QUEUE);
    expect(await takeAll(broker)).toEqual([]);
    await time.advance(2_000);
    const heard = await record(broker);
    await broker.resume(QUEUE);
    await until('the listener is notified', () => heard.includes(`work ${QUEUE}`));
  });

  it('a listener is notified that a group has grown', async (broker) => {
    const heard = await record(broker);
    await broker.enqueue(newTask({ group: 'g' }));
    await until('the listener is notified', () => heard.includes(`grouped ${QUEUE} g`));
  });

  it('a listener is notified that a set is replaced, and that one has returned to its group', async (broker, time) => {
    await broker.enqueueMany([newTask({ id: 'a', group: 'g' }), newTask({ id: 'b', group: 'g' })]);
    const set = await takeSet(broker, 'g');
    await takeSet(broker, 'g', 1, 1_000);
    const heard = await record(broker);
    await broker.replaceSet(set, newTask());
    await until('the listener is notified', () => heard.includes(`settled ${QUEUE} a`));
    await time.pass(1_000);
    await catchUp(broker);
    await until('the listener is notified', () => heard.includes(`grouped ${QUEUE} g`));
  });

  it('a listener is notified of progress', async (broker) => {
    await broker.enqueue(newTask({ id: 'a' }));
    const heard = await record(broker);
    await broker.writeProgress(await take(broker), '1');
    await until('the listener is notified', () => heard.includes(`progressed ${QUEUE} a`));
  });

  for (const [what, settle] of Object.entries(SETTLING)) {
    it(`a listener is notified that a task ${what}`, async (broker) => {
      await broker.enqueue(newTask({ id: 'a' }));
      const heard = await record(broker);
      await settle(broker);
      await until('the listener is notified', () => heard.includes(`settled ${QUEUE} a`));
    });
  }

  it('a listener is not notified after its subscription is closed, and others are', async (broker) => {
    const [gone, there] = [recorder(), recorder()];
    const subscription = await broker.subscribe(gone.listener, QUEUES);
    await broker.subscribe(there.listener, QUEUES);
    await subscription.close();
    await subscription.close();
    await broker.enqueue(newTask());
    await until('the listener is notified', () => there.heard.length > 0);
    expect(gone.heard).toEqual([]);
  });

  it('a listener may have methods for some events only', async (broker) => {
    const { heard, listener } = recorder();
    await broker.subscribe({}, QUEUES);
    await broker.subscribe(listener, QUEUES);
    await broker.enqueue(newTask({ group: 'g' }));
    await until('the listener is notified', () => heard.length > 0);
  });

  it('a listener that is not an object, or queues without an array, are rejected, and nothing listens', async (broker) => {
    await expectCode('ERR_INVALID_ARG_TYPE', broker.subscribe(undefined as never, QUEUES));
    await expectCode('ERR_INVALID_ARG_TYPE', broker.subscribe({}, QUEUE as never));
    await broker.close(); // notifies every listener
  });

  it('a cancel request resolves with whether a server runs the task', async (broker) => {
    const { id } = await putInto(broker, 'active');
    const request = { taskId: id, queue: QUEUE, outcome: 'archive' } as const;
    expect(await broker.cancel(request, 100)).toBe(false);
    const asked: unknown[] = [];
    await broker.subscribe({ cancel: (what) => asked.push(what) === 0 }, []);
    const subscription = await broker.subscribe({ cancel: ({ taskId }) => taskId === id }, []);
    expect(await broker.cancel(request, 5_000)).toBe(true);
    await until('the listener is notified', () => asked.length > 0);
    expect(asked).toEqual([request]);
    await subscription.close();
    expect(await broker.cancel({ ...request, queue: undefined }, 100)).toBe(false);
  });

  it('a cancel request for a task that does not exist resolves with false', async (broker) => {
    await broker.subscribe({ cancel: () => false }, []);
    expect(await broker.cancel({ taskId: 'nothing', queue: 'nowhere', outcome: 'retry' }, 100)).toBe(false);
    expect(await broker.queues()).toEqual([]);
  });

  it('listeners are notified of maintenance that a broker does by itself', async (broker, time) => {
    if (broker.maintenance.length > 0) return;
    await broker.enqueue(newTask());
    await take(broker, QUEUE, 1_000);
    await broker.enqueue(newTask({ group: 'g' }));
    await takeSet(broker, 'g', 1, 1_000);
    await broker.enqueue(newTask({ processAtMs: broker.clock.wallNow() + 1_000 }));
    const heard = await record(broker);
    await time.pass(1_000);
    await until('the listener is notified', () => heard.length === 3);
    expect(heard.sort()).toEqual([`grouped ${QUEUE} g`, `leaseExpired ${QUEUE}`, `work ${QUEUE}`]);
  });
}
