import { Task, EmbeddedBroker, type LeasedTask, type NewTask } from 'escapement/tasks';
import { checkBroker, ManualClock } from 'escapement/testing';
import { expect, test } from 'vitest';
import { newTaskOf } from '../../src/tasks/task-options.ts';
import { failure, LONG_MS, newTask, QUEUE, take } from '../conformance/broker/support.ts';
import { heldBytes, isCollected } from './collect.ts';

/** What a test process moves by on its own. */
const SLACK_BYTES = 2_000_000;

async function open(): Promise<{ broker: EmbeddedBroker; clock: ManualClock }> {
  const clock = new ManualClock();
  return { clock, broker: await EmbeddedBroker.open({ clock, maxArchived: 100 }) };
}

const COUNT = 125_000;
const MOST_BYTES_EACH = 600;

test(
  'scheduled tasks take 600 bytes each at most beside their payload, wait for one wake-up, and leave nothing behind',
  { timeout: 120_000 },
  async () => {
    const { broker, clock } = await open();
    const task = new Task('test:task');
    const fill = async (): Promise<void> => {
      for (let i = 0; i < COUNT; i++) {
        await broker.enqueue(newTaskOf(task, { processInMs: 60_000 + (i % 600_000) }, clock));
      }
    };
    const before = await heldBytes();
    await fill();
    const { memoryBytes } = await broker.queueStats(QUEUE);
    const bytes = (await heldBytes()) - before;
    expect(bytes / COUNT).toBeLessThan(MOST_BYTES_EACH);
    // Half as much or twice as much would help nobody.
    expect(memoryBytes / bytes).toBeGreaterThan(0.7);
    expect(memoryBytes / bytes).toBeLessThan(1.5);
    expect(clock.pendingWakeups).toBe(1);

    expect(await broker.change(QUEUE, { state: 'scheduled' }, 'delete')).toBe(COUNT);
    expect(clock.pendingWakeups).toBe(0);
    // The timer keeps what its pages need, and the table of ids its smallest size.
    expect((await heldBytes()) - before).toBeLessThan(2_500_000);
    checkBroker(broker);
  },
);

/** Everything that a task can come to, in a queue that has nothing else. */
const ENDS: Record<string, (broker: EmbeddedBroker, clock: ManualClock, task: NewTask) => Promise<unknown>> =
  {
    'it is done': async (broker, _, task) => {
      await broker.enqueue(task);
      await broker.complete(await take(broker));
    },
    'it is done, and its retention is over': async (broker, clock, task) => {
      await broker.enqueue({ ...task, message: { ...task.message, retentionMs: 1_000 } });
      await broker.complete(await take(broker));
      clock.advance(1_000);
    },
    'it is discarded after a retry': async (broker, clock, task) => {
      await broker.enqueue(task);
      await broker.retry(await take(broker), failure(), clock.wallNow() + 1_000);
      clock.advance(1_000);
      await broker.discard(await take(broker));
    },
    'it is deleted from the archive': async (broker, _, task) => {
      await broker.enqueue(task);
      await broker.archive(await take(broker), failure());
      await broker.change(QUEUE, { id: task.message.id }, 'delete');
    },
    'it was scheduled, and is deleted': async (broker, _, task) => {
      await broker.enqueue({ ...task, processAtMs: LONG_MS });
      await broker.change(QUEUE, { state: 'scheduled' }, 'delete');
    },
    'its group was replaced': async (broker, _, task) => {
      await broker.enqueue({ ...task, message: { ...task.message, group: 'g' } });
      const { set } = await broker.takeGroup(QUEUE, 'g', { graceMs: 0, maxDelayMs: 0, maxSize: 0 }, LONG_MS);
      if (set !== undefined) await broker.replaceSet(set, newTask({ group: 'sums' }));
      await broker.change(QUEUE, { state: 'aggregating' }, 'delete');
    },
    'its worker was gone': async (broker, clock, task) => {
      await broker.enqueue(task);
      await take(broker, QUEUE, 1_000);
      clock.advance(1_000);
      const [lease] = await broker.recover([QUEUE], 0, 1_000);
      await broker.complete(lease as LeasedTask);
    },
    'it was refused': async (broker, _, task) => {
      await broker.enqueue(newTask({ id: task.message.id }));
      await broker.enqueue(task).catch(() => undefined);
      await broker.complete(await take(broker));
    },
    'its queue is removed': async (broker, _, task) => {
      await broker.enqueue(task);
      const message = { ...task.message, id: 'later' };
      await broker.enqueue({ ...task, processAtMs: LONG_MS, uniqueTtlMs: 0, message });
      await broker.removeQueue(QUEUE, { force: true });
    },
  };

test.each(Object.entries(ENDS))(
  'a task is held by nothing when %s, although the broker goes on',
  async (_, end) => {
    const { broker, clock } = await open();
    const heard: string[] = [];
    await broker.subscribe({ settled: (_queue, id) => heard.push(id) });
    const useAndForget = async (): Promise<WeakRef<Uint8Array>> => {
      const payload = new Uint8Array(100);
      await end(broker, clock, newTask({ id: 'a', payload, uniqueKey: 'key' }));
      return new WeakRef(payload);
    };
    expect(await isCollected(await useAndForget())).toBe(true);
    expect(heard).toContain('a');
    checkBroker(broker);
    await broker.enqueue(newTask({ id: 'a', uniqueKey: 'key' }));
  },
);

test.each(Object.entries(ENDS))('forty thousand tasks leave the heap as it was when %s', async (_, end) => {
  const { broker, clock } = await open();
  const round = async (from: number, to: number): Promise<void> => {
    for (let i = from; i < to; i++)
      await end(broker, clock, newTask({ id: `id ${i}`, uniqueKey: `key ${i}` }));
  };
  await round(0, 10_000);
  const before = await heldBytes();
  await round(10_000, 50_000); // the slack is 50 bytes each: less than an entry of a map and its key
  expect((await heldBytes()) - before).toBeLessThan(SLACK_BYTES);
  checkBroker(broker);
});

const useAndForget = async (clock: ManualClock, isClosed: boolean): Promise<WeakRef<EmbeddedBroker>> => {
  const broker = await EmbeddedBroker.open({ clock });
  await broker.enqueue(newTask(isClosed ? { processAtMs: LONG_MS } : {}));
  await broker.subscribe({ work: () => undefined });
  await broker.announceServer(() => ({ id: 'a' }) as never, 1);
  if (isClosed) await broker.close();
  return new WeakRef(broker);
};

test.each([true, false])(
  'a broker is collectable although its clock goes on; closed: %s',
  async (isClosed) => {
    const clock = new ManualClock();
    expect(await isCollected(await useAndForget(clock, isClosed))).toBe(true);
    expect(clock.pendingWakeups).toBe(0);
  },
);

test('a broker that was closed holds nothing of what was in it', async () => {
  const { broker } = await open();
  const fill = async (): Promise<WeakRef<Uint8Array>> => {
    const payload = new Uint8Array(100);
    await broker.enqueue(newTask({ payload }));
    return new WeakRef(payload);
  };
  const payload = await fill();
  await broker.close();
  expect(await isCollected(payload)).toBe(true);
  await expect(broker.ping()).rejects.toMatchObject({ code: 'ERR_BROKER_CLOSED' });
});
