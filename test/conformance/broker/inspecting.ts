import { TASK_STATES } from '../../../src/tasks/task-state.ts';
import type { Broker } from 'escapement/tasks';
import { describe, expect } from 'vitest';
import {
  caseWith,
  expectCode,
  failure,
  idsIn,
  idsOf,
  LONG_MS,
  newTask,
  putInto,
  putIntoEach,
  QUEUE,
  take,
  type BrokerFactory,
} from './support.ts';

const NOTHING = { active: 0, pending: 0, scheduled: 0, retry: 0, archived: 0, completed: 0, aggregating: 0 };

const page = { page: 1, size: 10 };

/** Operations on a queue that must exist. */
const OF_A_QUEUE: Record<string, (broker: Broker, queue: string) => Promise<unknown>> = {
  queueStats: (broker, queue) => broker.queueStats(queue),
  history: (broker, queue) => broker.history(queue, 1),
  task: (broker, queue) => broker.task(queue, 'a'),
  tasks: (broker, queue) => broker.tasks(queue, 'pending', page),
  deleteTask: (broker, queue) => broker.change(queue, { id: 'a' }, 'delete'),
  runTask: (broker, queue) => broker.change(queue, { id: 'a' }, 'run'),
  archiveTask: (broker, queue) => broker.change(queue, { id: 'a' }, 'archive'),
  updatePayload: (broker, queue) => broker.updatePayload(queue, 'a', Uint8Array.of(1)),
  deleteAll: (broker, queue) => broker.change(queue, { state: 'pending' }, 'delete'),
  runAll: (broker, queue) => broker.change(queue, { state: 'scheduled' }, 'run'),
  archiveAll: (broker, queue) => broker.change(queue, { state: 'pending' }, 'archive'),
  repair: (broker, queue) => broker.repair(queue, { apply: true }),
  pause: (broker, queue) => broker.pause(queue),
  resume: (broker, queue) => broker.resume(queue),
  removeQueue: (broker, queue) => broker.removeQueue(queue, { force: true }),
};

const OF_A_TASK = ['task', 'deleteTask', 'runTask', 'archiveTask', 'updatePayload'];

export function describeInspecting(make: BrokerFactory): void {
  const it = caseWith(make);

  describe('a queue that does not exist', () => {
    for (const [name, operation] of Object.entries(OF_A_QUEUE)) {
      it(`is not found by ${name}`, async ({ broker }) => {
        await expectCode('ERR_QUEUE_NOT_FOUND', operation(broker, 'nowhere'));
        expect(await broker.queues()).toEqual([]);
      });
    }
  });

  describe('a task that does not exist', () => {
    for (const name of OF_A_TASK) {
      it(`is not found by ${name}`, async ({ broker }) => {
        await putInto(broker, 'pending', { id: 'other' });
        await expectCode('ERR_TASK_NOT_FOUND', OF_A_QUEUE[name]?.(broker, QUEUE) ?? Promise.resolve());
      });
    }
  });

  describe('the numbers of a queue', () => {
    it('the statistics of a queue have its tasks by state', async ({ broker }) => {
      await putIntoEach(broker);
      const stats = await broker.queueStats(QUEUE);
      expect(stats.counts).toEqual(Object.fromEntries(TASK_STATES.map((state) => [state, 1])));
      expect(stats).toMatchObject({ queue: QUEUE, groups: 1, isPaused: false });
      expect(Math.abs(stats.atMs - broker.clock.wallNow())).toBeLessThanOrEqual(1_000);
      await putInto(broker, 'aggregating', { queue: 'other', group: 'a' });
      await putInto(broker, 'aggregating', { queue: 'other', group: 'b' });
      expect(await broker.queueStats('other')).toMatchObject({
        groups: 2,
        counts: { ...NOTHING, aggregating: 2 },
      });
    });

    it('the statistics of a queue have the latency', async ({ broker, advance, precisionMs }) => {
      await putInto(broker, 'active');
      expect((await broker.queueStats(QUEUE)).latencyMs).toBe(0);
      await broker.enqueue(newTask());
      await advance(2_000);
      await broker.enqueue(newTask());
      const { latencyMs } = await broker.queueStats(QUEUE);
      expect(latencyMs).toBeGreaterThanOrEqual(2_000 - precisionMs);
      expect(latencyMs).toBeLessThanOrEqual(4_000 + precisionMs);
    });

    it('the statistics of a queue have an estimate of its memory', async ({ broker }) => {
      await putInto(broker, 'pending');
      const empty = (await broker.queueStats(QUEUE)).memoryBytes;
      expect(empty).toBeGreaterThan(0);
      await broker.enqueueMany(
        Array.from({ length: 20 }, () => newTask({ payload: new Uint8Array(10_000) })),
      );
      const full = (await broker.queueStats(QUEUE)).memoryBytes;
      expect(full - empty).toBeGreaterThan(150_000);
      expect(full - empty).toBeLessThan(400_000);
    });

    it('the statistics of a queue have the runs of today and in total', async ({ broker }) => {
      await broker.enqueueMany([newTask(), newTask(), newTask(), newTask(), newTask()]);
      await broker.complete(await take(broker));
      await broker.complete(await take(broker));
      await broker.retry(await take(broker), failure(), broker.clock.wallNow() + LONG_MS);
      await broker.archive(await take(broker), failure());
      await broker.discard(await take(broker));
      const stats = await broker.queueStats(QUEUE);
      expect(stats).toMatchObject({ processed: 4, failed: 2, processedTotal: 4, failedTotal: 2 });
      const [today, yesterday, ...more] = await broker.history(QUEUE, 2);
      const date = (ms: number): string => new Date(ms).toISOString().slice(0, 10);
      expect(today).toEqual({ queue: QUEUE, date: date(stats.atMs), processed: 4, failed: 2 });
      expect(yesterday).toEqual({
        queue: QUEUE,
        date: date(stats.atMs - 86_400_000),
        processed: 0,
        failed: 0,
      });
      expect(more).toEqual([]);
    });
  });

  describe('a list of tasks', () => {
    for (const state of TASK_STATES) {
      it(`a list of tasks that are ${state} has those and no others`, async ({ broker }) => {
        await putIntoEach(broker);
        const [record, ...more] = await broker.tasks(QUEUE, state, page);
        expect(more).toEqual([]);
        expect(record).toMatchObject({ state, message: { id: state } });
        const alone = await broker.task(QUEUE, state);
        expect({ ...record, nextProcessAtMs: 0 }).toEqual({ ...alone, nextProcessAtMs: 0 });
      });
    }

    it('pending tasks are listed in pages, in the order in which they are processed', async ({ broker }) => {
      const ids = Array.from({ length: 7 }, (_, i) => `task ${i}`);
      for (const id of ids) await broker.enqueue(newTask({ id }));
      const pages = await Promise.all(
        [1, 2, 3, 4].map((at) => broker.tasks(QUEUE, 'pending', { page: at, size: 3 })),
      );
      expect(pages.map(idsOf)).toEqual([ids.slice(0, 3), ids.slice(3, 6), ids.slice(6), []]);
      await broker.release(await take(broker));
      expect(await idsIn(broker, 'pending')).toEqual(ids);
    });

    for (const state of ['scheduled', 'retry'] as const) {
      it(`tasks that are ${state} are listed by time, the earliest first`, async ({ broker }) => {
        const startMs = broker.clock.wallNow() + LONG_MS;
        const hours = [5, 1, 9, 3, 7, 2, 8, 4, 6];
        for (const hour of hours) {
          const atMs = startMs + hour * 3_600_000;
          await broker.enqueue(newTask({ id: `${hour}`, processAtMs: state === 'scheduled' ? atMs : 0 }));
          if (state === 'retry') await broker.retry(await take(broker), failure(), atMs);
        }
        const pages = await Promise.all(
          [1, 2, 3, 4].map((at) => broker.tasks(QUEUE, state, { page: at, size: 4 })),
        );
        expect(pages.map(idsOf)).toEqual([['1', '2', '3', '4'], ['5', '6', '7', '8'], ['9'], []]);
      });
    }

    for (const state of ['active', 'archived', 'completed'] as const) {
      it(`tasks that are ${state} are listed with the oldest first`, async ({
        broker,
        advance,
        precisionMs,
      }) => {
        for (const id of ['b', 'a', 'c']) {
          await putInto(broker, state, { id });
          await advance(precisionMs);
        }
        expect(await idsIn(broker, state)).toEqual(['b', 'a', 'c']);
        expect(idsOf(await broker.tasks(QUEUE, state, { page: 2, size: 1 }))).toEqual(['a']);
      });
    }

    it('aggregating tasks of one group can be listed', async ({ broker, advance, precisionMs }) => {
      for (const [id, group] of [
        ['a', 'x'],
        ['b', 'y'],
        ['c', 'x'],
      ] as const) {
        await broker.enqueue(newTask({ id, group }));
        await advance(precisionMs);
      }
      expect(await idsIn(broker, 'aggregating', 'x')).toEqual(['a', 'c']);
      expect(await idsIn(broker, 'aggregating', 'y')).toEqual(['b']);
      expect(await idsIn(broker, 'aggregating', 'z')).toEqual([]);
      expect((await idsIn(broker, 'aggregating')).sort()).toEqual(['a', 'b', 'c']);
      expect(idsOf(await broker.tasks(QUEUE, 'aggregating', { page: 2, size: 1 }, 'x'))).toEqual(['c']);
    });
  });

  describe('numbers of pages, days and tasks', () => {
    it('pages, days and limits that are not valid are rejected', async ({ broker }) => {
      await putInto(broker, 'pending');
      for (const wrong of [
        { page: 0, size: 1 },
        { page: 1, size: 0 },
        { page: 1.5, size: 1 },
        { page: NaN, size: 1 },
      ]) {
        await expectCode('ERR_OUT_OF_RANGE', broker.tasks(QUEUE, 'pending', wrong));
        await expectCode('ERR_OUT_OF_RANGE', broker.enqueueEvents('entry', wrong));
      }
      await expectCode('ERR_OUT_OF_RANGE', broker.history(QUEUE, 0));
      await expectCode('ERR_OUT_OF_RANGE', broker.dequeue(QUEUE, -1, LONG_MS));
      await expectCode('ERR_OUT_OF_RANGE', broker.dequeue(QUEUE, 1, NaN));
      expect(await idsIn(broker, 'pending')).toHaveLength(1);
    });
  });
}
