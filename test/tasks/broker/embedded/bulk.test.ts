import { EmbeddedBroker, type TaskState } from 'escapement/tasks';
import { checkBroker, ManualClock } from 'escapement/testing';
import { describe, expect, test } from 'vitest';
import { expectCode, LONG_MS, newTask, QUEUE } from '../../../conformance/broker/support.ts';

const MANY = 5_500;

type Bulk = (broker: EmbeddedBroker) => Promise<unknown>;

const BULKS: Record<string, Bulk> = {
  deleteAll: (broker) => broker.change(QUEUE, { state: 'scheduled' }, 'delete'),
  runAll: (broker) => broker.change(QUEUE, { state: 'scheduled' }, 'run'),
  archiveAll: (broker) => broker.change(QUEUE, { state: 'scheduled' }, 'archive'),
  removeQueue: (broker) => broker.removeQueue(QUEUE, { force: true }),
};

async function fill(): Promise<EmbeddedBroker> {
  const clock = new ManualClock();
  const broker = await EmbeddedBroker.open({ clock });
  await broker.enqueueMany(
    Array.from({ length: MANY }, (_, i) => newTask({ processAtMs: LONG_MS, uniqueKey: `key ${i}` })),
  );
  return broker;
}

/** Does something in every turn that the host has until the promise is settled. */
async function duringTurnsOf<T>(promise: Promise<T>, act: () => void): Promise<T> {
  const isOver = { now: false };
  const done = promise.finally(() => (isOver.now = true));
  while (!isOver.now) {
    act();
    await new Promise((resolve) => setImmediate(resolve));
  }
  return done;
}

async function count(broker: EmbeddedBroker, state: TaskState): Promise<number> {
  return (await broker.queueStats(QUEUE)).counts[state];
}

describe('a bulk operation', () => {
  test.each(Object.entries(BULKS))(
    'a bulk operation lets other turns of the event loop run: %s',
    async (_, bulk) => {
      const broker = await fill();
      let turns = 0;
      await duringTurnsOf(bulk(broker), () => {
        turns++;
      });
      expect(turns).toBeGreaterThanOrEqual(5);
      checkBroker(broker);
    },
  );

  test.each(Object.entries(BULKS))(
    'a bulk operation stops when the broker is closed: %s',
    async (_, bulk) => {
      const broker = await fill();
      const done = bulk(broker);
      await broker.close();
      await expectCode('ERR_BROKER_CLOSED', done);
    },
  );

  test('a bulk operation stops when its queue is removed', async () => {
    const broker = await fill();
    const done = broker.change(QUEUE, { state: 'scheduled' }, 'run');
    await broker.removeQueue(QUEUE, { force: true });
    expect(await done).toBe(1_000);
    await broker.enqueue(newTask());
    expect(await count(broker, 'pending')).toBe(1);
    checkBroker(broker);
  });

  test('a bulk operation ends although tasks are added all the time', async () => {
    const broker = await fill();
    let added = 0;
    const deleted = await duringTurnsOf(broker.change(QUEUE, { state: 'scheduled' }, 'delete'), () => {
      for (let i = 0; i < 2_000; i++, added++) void broker.enqueue(newTask({ processAtMs: LONG_MS }));
    });
    expect(deleted).toBe(MANY);
    expect(await count(broker, 'scheduled')).toBe(added);
  });

  test('a bulk operation changes tasks that enter the state while it runs', async () => {
    const broker = await fill();
    const done = broker.change(QUEUE, { state: 'scheduled' }, 'archive');
    const others = broker.change(QUEUE, { state: 'scheduled' }, 'delete');
    expect((await done) + (await others)).toBe(MANY);
    expect(await count(broker, 'scheduled')).toBe(0);
    checkBroker(broker);
  });
});

describe('removing a queue with many tasks', () => {
  test('a removed queue does not exist from then on, its locks are free, and a new queue of that name is not changed', async () => {
    const broker = await fill();
    const removed = broker.removeQueue(QUEUE, { force: true });
    expect(await broker.queues()).toEqual([]);
    const tasks = Array.from({ length: MANY }, (_, i) => newTask({ uniqueKey: `key ${i}` }));
    await broker.enqueueMany(tasks);
    expect(await count(broker, 'pending')).toBe(MANY);
    await removed;
    expect(await count(broker, 'pending')).toBe(MANY);
    await expectCode('ERR_TASK_DUPLICATE', broker.enqueue(newTask({ uniqueKey: `key ${MANY - 1}` })));
    checkBroker(broker);
  });

  test('the tasks of a removed queue do nothing when their timers fire', async () => {
    const clock = new ManualClock();
    const broker = await EmbeddedBroker.open({ clock });
    await broker.enqueueMany(Array.from({ length: MANY }, () => newTask({ processAtMs: 1_000 })));
    const heard: string[] = [];
    await broker.subscribe({ work: (queue) => heard.push(queue) });
    const removed = broker.removeQueue(QUEUE, { force: true });
    clock.advance(1_000);
    await removed;
    expect(heard).toEqual([]);
    expect(clock.pendingWakeups).toBe(0);
    expect(await broker.queues()).toEqual([]);
    checkBroker(broker);
  });
});
