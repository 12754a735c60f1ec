import { mkdirSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { EmbeddedBroker, type EmbeddedBrokerOptions, type NewTask, type TaskState } from 'escapement/tasks';
import { checkBroker, ManualClock } from 'escapement/testing';
import { describe, expect, test } from 'vitest';
import {
  expectCode,
  failure,
  idsIn,
  LONG_MS,
  newTask,
  QUEUE,
  take,
} from '../../../conformance/broker/support.ts';
import { folderOfTest } from '../../../folder.ts';
import { openFolder } from './open-folder.ts';

test.each([[], [{ maxArchived: 1 }]])('new EmbeddedBroker(%j) throws, and names open', (...args) => {
  const Constructor = EmbeddedBroker as unknown as new (...args: unknown[]) => EmbeddedBroker;
  expect(() => new Constructor(...args)).toThrow(
    expect.objectContaining({
      name: 'TypeError',
      code: 'ERR_ILLEGAL_CONSTRUCTOR',
      message: 'EmbeddedBroker has no public constructor. Use await EmbeddedBroker.open({ … })',
    }),
  );
});

test('a relative folder stays the same when the process changes its working directory', async () => {
  const before = process.cwd();
  const folder = folderOfTest();
  const there = join(folder, 'there', 'jobs');
  mkdirSync(there, { recursive: true });
  try {
    process.chdir(folder);
    const broker = await openFolder('jobs');
    process.chdir('there');
    const payload = new Uint8Array(2_000);
    for (let nth = 0; nth < 10; nth++) await broker.enqueue(newTask({ payload }));
    const tasks = await broker.tasks(QUEUE, 'pending', { page: 1, size: 10 });
    expect(tasks.map(({ message }) => message.payload)).toEqual(Array.from({ length: 10 }, () => payload));
    expect([broker.dataPath, readdirSync(there)]).toEqual([join(folder, 'jobs'), []]);
    await broker.close();
  } finally {
    process.chdir(before);
  }
});

describe('the archive', () => {
  const START_MS = 1_795_262_400_000;

  async function open(
    options: EmbeddedBrokerOptions,
  ): Promise<{ broker: EmbeddedBroker; clock: ManualClock }> {
    const clock = new ManualClock({ wallMs: START_MS });
    return { clock, broker: await EmbeddedBroker.open({ clock, ...options }) };
  }

  test('an archive with maxArchived 0 keeps no task', async () => {
    const { broker } = await open({ maxArchived: 0 });
    await broker.enqueue(newTask({ id: 'a', uniqueKey: 'key' }));
    await broker.archive(await take(broker), failure());
    expect(await idsIn(broker, 'archived')).toEqual([]);
    expect(await broker.queueStats(QUEUE)).toMatchObject({ processed: 1, failed: 1 });
    await broker.enqueue(newTask({ id: 'a', uniqueKey: 'key' }));
    checkBroker(broker);
  });

  test('the archive keeps 10 000 tasks for 90 days by default', async () => {
    const { broker, clock } = await open({});
    await broker.enqueueMany(Array.from({ length: 10_001 }, (_, i) => newTask({ id: `${i}` })));
    await broker.change(QUEUE, { state: 'pending' }, 'archive');
    expect((await broker.queueStats(QUEUE)).counts.archived).toBe(10_000);
    await clock.advanceAsync(90 * 86_400_000 - 1);
    expect((await broker.queueStats(QUEUE)).counts.archived).toBe(10_000);
    await clock.advanceAsync(1);
    expect((await broker.queueStats(QUEUE)).counts.archived).toBe(0);
    checkBroker(broker);
  });
});

const MANY = 5_500;

type Bulk = (broker: EmbeddedBroker) => Promise<unknown>;

const CHANGES: Record<string, Bulk> = {
  deleteAll: (broker) => broker.change(QUEUE, { state: 'scheduled' }, 'delete'),
  runAll: (broker) => broker.change(QUEUE, { state: 'scheduled' }, 'run'),
  archiveAll: (broker) => broker.change(QUEUE, { state: 'scheduled' }, 'archive'),
};

const BULKS: Record<string, Bulk> = {
  ...CHANGES,
  removeQueue: (broker) => broker.removeQueue(QUEUE, { force: true }),
};

async function fill(): Promise<EmbeddedBroker> {
  const broker = await EmbeddedBroker.open({ clock: new ManualClock() });
  const nth = (_: unknown, i: number): NewTask => newTask({ processAtMs: LONG_MS, uniqueKey: `key ${i}` });
  await broker.enqueueMany(Array.from({ length: MANY }, nth));
  return broker;
}

/** Does something in every turn that the host has until the promise is settled. */
async function duringTurnsOf<T>(promise: Promise<T>, act: () => unknown): Promise<T> {
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
      await duringTurnsOf(bulk(broker), () => turns++);
      expect(turns).toBeGreaterThanOrEqual(5);
      checkBroker(broker);
    },
  );

  test.each(Object.entries(CHANGES))(
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
  const subscription = await broker.subscribe({ work: (queue) => heard.push(queue) });
  const removed = broker.removeQueue(QUEUE, { force: true });
  clock.advance(1_000);
  await removed;
  expect(heard).toEqual([]);
  await subscription.close();
  expect(clock.pendingWakeups).toBe(0);
  expect(await broker.queues()).toEqual([]);
  checkBroker(broker);
});

test('the events of 1 000 schedule entries are kept, and those of the entry with the oldest last event are removed first', async () => {
  const broker = await EmbeddedBroker.open({ clock: new ManualClock() });
  const record = (entry: number): Promise<void> =>
    broker.recordEnqueueEvent(`entry ${entry}`, { taskId: 'a', atMs: entry });
  const count = async (entry: number): Promise<number> =>
    (await broker.enqueueEvents(`entry ${entry}`, { page: 1, size: 10 })).length;
  for (let entry = 0; entry < 1_000; entry++) await record(entry);
  await record(0);
  await record(1_000);
  expect([await count(0), await count(1), await count(2), await count(1_000)]).toEqual([2, 0, 1, 1]);
});

test('the events of a schedule entry are removed 90 days after the last one, when another entry has an event', async () => {
  const broker = await EmbeddedBroker.open({ clock: new ManualClock() });
  const DAY_MS = 86_400_000;
  const page = { page: 1, size: 10 };
  await broker.recordEnqueueEvent('gone', { taskId: 'a', atMs: DAY_MS });
  await broker.recordEnqueueEvent('kept', { taskId: 'b', atMs: 91 * DAY_MS });
  expect(await broker.enqueueEvents('gone', page)).toHaveLength(1);
  await broker.recordEnqueueEvent('kept', { taskId: 'c', atMs: 92 * DAY_MS });
  expect(await broker.enqueueEvents('gone', page)).toEqual([]);
  expect(await broker.enqueueEvents('kept', page)).toHaveLength(2);
});

describe('a notification', () => {
  async function open(): Promise<EmbeddedBroker> {
    return EmbeddedBroker.open({ clock: new ManualClock() });
  }

  test('a work notification comes after the operation, once for all operations of a turn', async () => {
    const broker = await open();
    const heard: string[] = [];
    await broker.subscribe({ work: (queue) => heard.push(queue) });
    const added = Array.from({ length: 100 }, (_, i) =>
      broker.enqueue(newTask({ queue: i % 2 === 0 ? 'a' : 'b' })),
    );
    expect(heard).toEqual([]);
    await Promise.all(added);
    expect(heard).toEqual(['a', 'b']);
    await broker.enqueue(newTask({ queue: 'a' }));
    expect(heard).toEqual(['a', 'b', 'a']);
  });

  test('a group notification comes once for tasks that follow each other', async () => {
    const broker = await open();
    const heard: string[] = [];
    await broker.subscribe({ grouped: (_, group) => heard.push(group) });
    await Promise.all(['x', 'x', 'y', 'x'].map((group) => broker.enqueue(newTask({ group }))));
    expect(heard).toEqual(['x', 'y', 'x']);
  });

  test('a settled notification comes for every task', async () => {
    const broker = await open();
    const heard: string[] = [];
    await broker.subscribe({ settled: (_, id) => heard.push(id) });
    await broker.enqueueMany(['a', 'b', 'c'].map((id) => newTask({ id })));
    await Promise.all((await broker.dequeue(QUEUE, 3, 1_000)).map((task) => broker.complete(task)));
    expect(heard).toEqual(['a', 'b', 'c']);
  });

  test('a listener may call the broker', async () => {
    const broker = await open();
    const done: string[] = [];
    await broker.subscribe({
      work: (queue) => {
        void take(broker, queue).then(async (task) => {
          await broker.complete(task);
          done.push(task.message.id);
        });
      },
    });
    await broker.enqueue(newTask({ id: 'a' }));
    await broker.enqueue(newTask({ id: 'b' }));
    await new Promise((resolve) => setImmediate(resolve));
    expect(done).toEqual(['a', 'b']);
  });

  test('a listener with two subscriptions is notified twice, and once after one of them is closed', async () => {
    const broker = await open();
    const heard: string[] = [];
    const listener = { work: (queue: string) => heard.push(queue) };
    const [first] = [await broker.subscribe(listener), await broker.subscribe(listener)];
    await broker.enqueue(newTask());
    expect(heard).toHaveLength(2);
    await first.close();
    await broker.enqueue(newTask());
    expect(heard).toHaveLength(3);
  });
});
