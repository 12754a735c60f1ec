import { randomUUID } from 'node:crypto';
import type { Broker, QueueLimits, QueueStats } from 'escapement/tasks';
import { expect } from 'vitest';
import { until } from '../../until.ts';
import { keyed, next, put } from './keys.ts';
import { countOf, ONE_AT_A_TIME, RATES } from './limits.ts';
import { caseWith, LONG_MS, newTask, QUEUE, take, type BrokerFactory } from './support.ts';

/** Redis notifies by the clock of the host, which a test cannot put forward: it has to wait so long. */
const SOON_MS = 800;

/** Notes the queues in which there is work. */
export async function listenTo(broker: Broker): Promise<string[]> {
  const heard: string[] = [];
  await broker.subscribe({ work: (queue) => heard.push(queue) }, [QUEUE, 'other']);
  return heard;
}

/** As `listenTo`, without what was published before: nodes of a cluster pass that on, and it may come later. */
async function listenFromNow(broker: Broker): Promise<string[]> {
  const heard: string[] = [];
  const note = (name: string): unknown => heard.push(name);
  await broker.subscribe({ work: note, grouped: (_, group) => note(group) }, [QUEUE, 'other']);
  const group = randomUUID();
  await broker.enqueue(newTask({ group }));
  await until('the listener is notified', () => heard.includes(group));
  heard.length = 0;
  return heard;
}

/** Waits until all that was notified before has been heard, and requires that it was of no work in the queue. */
async function expectSilence(broker: Broker, heard: readonly string[]): Promise<void> {
  await broker.enqueue(newTask({ queue: 'other' }));
  await until('the listener is notified', () => heard.includes('other'));
  expect(heard).not.toContain(QUEUE);
}

/** What is notified and shown of tasks that a limit holds back. */
export function describeHeldTasks(make: BrokerFactory): void {
  const it = caseWith(make);

  for (const [which, limits] of Object.entries(ONE_AT_A_TIME)) {
    it(`a task that has no place ${which} wakes no listener, and wakes all when a place is free`, async (broker) => {
      await broker.setLimits(QUEUE, limits);
      await put(broker, 'a1');
      const task = await take(broker);
      const listeners = [await listenFromNow(broker), await listenFromNow(broker)];
      await put(broker, 'a2', 'a3');
      await broker.enqueueMany([keyed('a4'), { ...keyed('a5'), isNext: true }]);
      for (const heard of listeners) await expectSilence(broker, heard);
      await broker.complete(task);
      await until('the listener is notified', () => listeners.every((heard) => heard.includes(QUEUE)));
    });
  }

  for (const [which, limitsOf] of Object.entries(RATES)) {
    it(`a task that has no token ${which} wakes no listener`, async (broker) => {
      await broker.setLimits(QUEUE, limitsOf({ tasks: 1, perMs: LONG_MS }));
      await put(broker, 'a1');
      const listeners = [await listenFromNow(broker), await listenFromNow(broker)];
      await take(broker);
      await put(broker, 'a2', 'a3');
      for (const heard of listeners) await expectSilence(broker, heard);
    });

    it(`a token ${which} that comes wakes all listeners, if a task waits for it`, async (broker, time) => {
      await broker.setLimits(QUEUE, limitsOf({ tasks: 1, perMs: SOON_MS }));
      await put(broker, 'a1');
      const listeners = [await listenFromNow(broker), await listenFromNow(broker)];
      await take(broker);
      await put(broker, 'a2', 'a3');
      await time.pass(SOON_MS);
      await until('the listener is notified', () => listeners.every((heard) => heard.includes(QUEUE)));
      expect(await next(broker, 1)).toEqual(['a2']);
    });
  }

  it('a rate that is raised wakes the listeners, at the latest when its next token comes', async (broker, time) => {
    for (const limitsOf of Object.values(RATES)) {
      await broker.setLimits(QUEUE, limitsOf({ tasks: 1, perMs: LONG_MS }));
      await broker.enqueueMany([newTask({ key: 'a' }), newTask({ key: 'a' })]);
      const heard = await listenTo(broker);
      expect(await countOf(broker)).toBe(1);
      await broker.setLimits(QUEUE, limitsOf({ tasks: 1, perMs: SOON_MS }));
      await time.pass(SOON_MS);
      await until('the listener is notified', () => heard.includes(QUEUE));
      expect(await countOf(broker)).toBe(1);
      await broker.setLimits(QUEUE, undefined);
    }
  });

  it('a token wakes no listener if nothing waits for it', async (broker, time) => {
    const rate = { tasks: 1, perMs: 1_000 };
    await broker.setLimits(QUEUE, { rate, perKey: { rate } });
    await put(broker, 'a1');
    await take(broker);
    const heard = await listenFromNow(broker);
    await time.advance(5_000);
    await expectSilence(broker, heard);
  });

  it('limits that are raised or removed wake the listeners', async (broker) => {
    await broker.setLimits(QUEUE, { concurrency: 1, perKey: { concurrency: 1 } });
    await put(broker, 'a1', 'a2', 'a3', 'b1');
    await take(broker);
    const heard = await listenTo(broker);
    await broker.setLimits(QUEUE, { concurrency: 2, perKey: { concurrency: 1 } });
    await until('the listener is notified', () => heard.includes(QUEUE));
    await take(broker);
    heard.length = 0;
    await broker.setLimits(QUEUE, undefined);
    await until('the listener is notified', () => heard.includes(QUEUE));
  });

  it('the keys that have pending or active tasks are listed, with what holds them back', async (broker, time) => {
    const rate = { tasks: 1, perMs: LONG_MS, burst: 2 };
    await broker.setLimits(QUEUE, { perKey: { concurrency: 1, rate } });
    expect(await broker.keys(QUEUE, { page: 1, size: 10 })).toEqual([]);
    await put(broker, 'done1', 'last1', 'a1', 'a2', 'a3', 'fast1', 'fast2', 'fast3', '1');
    await broker.enqueue(keyed('later1', { processAtMs: broker.clock.wallNow() + LONG_MS }));
    await broker.enqueue(keyed('grouped1', { group: 'g' }));
    const [done, , , fast1] = await broker.dequeue(QUEUE, 4, LONG_MS);
    if (done === undefined || fast1 === undefined) throw new Error('there were four');
    await broker.complete(done);
    await broker.complete(fast1);
    await put(broker, 'b1');
    const [, fast2] = await broker.dequeue(QUEUE, 2, LONG_MS);
    if (fast2 === undefined) throw new Error('fast2 was to be leased');
    expect(fast2.message.id).toBe('fast2');
    await broker.complete(fast2);

    const pages = await Promise.all([1, 2, 3].map((page) => broker.keys(QUEUE, { page, size: 2 })));
    expect(pages.map((page) => page.length)).toEqual([2, 2, 1]);
    const shown = new Map(pages.flat().map((stats) => [stats.key, stats]));
    const againInMs = shown.get('fast')?.againInMs ?? NaN;
    expect(againInMs).toBeGreaterThan(LONG_MS - 10_000 - time.precisionMs);
    expect(againInMs).toBeLessThanOrEqual(LONG_MS);
    const free = { heldBy: undefined, againInMs: undefined };
    expect(Object.fromEntries(shown)).toEqual({
      '': { key: '', pending: 0, active: 1, heldBy: 'concurrency', againInMs: undefined },
      a: { key: 'a', pending: 2, active: 1, heldBy: 'concurrency', againInMs: undefined },
      b: { key: 'b', pending: 1, active: 0, ...free },
      last: { key: 'last', pending: 0, active: 1, heldBy: 'concurrency', againInMs: undefined },
      fast: { key: 'fast', pending: 1, active: 0, heldBy: 'rate', againInMs },
    });
  });

  it('a queue shows how many of its pending tasks may not start now, by the kind of limit', async (broker) => {
    const rate = (tasks: number): QueueLimits => ({ rate: { tasks, perMs: LONG_MS } });
    const cases: [limits: QueueLimits | undefined, held: QueueStats['held']][] = [
      [undefined, { concurrency: 0, rate: 0 }],
      [{ concurrency: 6 }, { concurrency: 0, rate: 0 }],
      [{ concurrency: 4 }, { concurrency: 2, rate: 0 }],
      [{ concurrency: 1 }, { concurrency: 5, rate: 0 }],
      [{ perKey: { concurrency: 1 } }, { concurrency: 3, rate: 0 }],
      [{ perKey: { concurrency: 2 } }, { concurrency: 2, rate: 0 }],
      [rate(2), { concurrency: 0, rate: 3 }],
      [{ perKey: rate(1) }, { concurrency: 0, rate: 2 }],
      [
        { concurrency: 2, perKey: rate(1) },
        { concurrency: 2, rate: 2 },
      ],
      [
        { ...rate(1), perKey: { concurrency: 1 } },
        { concurrency: 3, rate: 1 },
      ],
    ];
    await put(broker, 'a1', 'a2', 'a3', 'a4', 'b1');
    await broker.enqueue(newTask());
    await take(broker); // the first of a, which runs
    for (const [limits, held] of cases) {
      await broker.setLimits(QUEUE, limits);
      expect((await broker.queueStats(QUEUE)).held).toEqual(held);
    }
    await broker.setLimits(QUEUE, rate(3));
    await broker.dequeue(QUEUE, 2, LONG_MS);
    expect((await broker.queueStats(QUEUE)).held).toEqual({ concurrency: 0, rate: 2 });
  });

  it('a queue shows how long the oldest task has waited that no limit and no pause holds back', async (broker, time) => {
    const expectRunnable = async (ms: number): Promise<void> => {
      const { runnableMs } = await broker.queueStats(QUEUE);
      expect(runnableMs).toBeGreaterThanOrEqual(ms);
      expect(runnableMs).toBeLessThan(ms + 5_000 + time.precisionMs);
    };
    await broker.setLimits(QUEUE, { perKey: { concurrency: 1 } });
    expect((await broker.queueStats(QUEUE)).runnableMs).toBe(0);
    await put(broker, 'a1', 'a2');
    await take(broker);
    await time.advance(60_000);
    expect((await broker.queueStats(QUEUE)).runnableMs).toBe(0);
    await put(broker, 'b1');
    await time.advance(10_000);
    await put(broker, 'c1');
    await expectRunnable(10_000);
    await broker.pause(QUEUE);
    expect((await broker.queueStats(QUEUE)).runnableMs).toBe(0);
    await broker.resume(QUEUE);
    await broker.setLimits(QUEUE, undefined);
    await expectRunnable(70_000);
    await broker.setLimits(QUEUE, { concurrency: 1 });
    expect((await broker.queueStats(QUEUE)).runnableMs).toBe(0);
  });
}
