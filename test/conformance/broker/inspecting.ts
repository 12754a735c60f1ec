import { TASK_STATES } from '../../../src/tasks/task-state.ts';
import type { Broker, ScanPosition, TaskRecord, TaskState } from 'escapement/tasks';
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
  scan: (broker, queue) => broker.scan(queue, ['pending'], 1),
  deleteTask: (broker, queue) => broker.change(queue, { id: 'a' }, 'delete'),
  runTask: (broker, queue) => broker.change(queue, { id: 'a' }, 'run'),
  archiveTask: (broker, queue) => broker.change(queue, { id: 'a' }, 'archive'),
  updatePayload: (broker, queue) => broker.updatePayload(queue, 'a', Uint8Array.of(1)),
  deleteAll: (broker, queue) => broker.change(queue, { state: 'pending' }, 'delete'),
  runAll: (broker, queue) => broker.change(queue, { state: 'scheduled' }, 'run'),
  archiveAll: (broker, queue) => broker.change(queue, { state: 'pending' }, 'archive'),
  repair: (broker, queue) => broker.repair(queue, { apply: true }),
  keys: (broker, queue) => broker.keys(queue, page),
  pause: (broker, queue) => broker.pause(queue),
  resume: (broker, queue) => broker.resume(queue),
  removeQueue: (broker, queue) => broker.removeQueue(queue, { force: true }),
};

const OF_A_TASK = ['task', 'deleteTask', 'runTask', 'archiveTask', 'updatePayload'];

export function describeInspecting(make: BrokerFactory): void {
  const it = caseWith(make);

  for (const [name, operation] of Object.entries(OF_A_QUEUE)) {
    it(`a queue that does not exist is not found by ${name}`, async (broker) => {
      await expectCode('ERR_QUEUE_NOT_FOUND', operation(broker, 'nowhere'));
      expect(await broker.queues()).toEqual([]);
    });
  }

  for (const name of OF_A_TASK) {
    it(`a task that does not exist is not found by ${name}`, async (broker) => {
      await putInto(broker, 'pending', { id: 'other' });
      await expectCode('ERR_TASK_NOT_FOUND', OF_A_QUEUE[name]?.(broker, QUEUE) ?? Promise.resolve());
    });
  }

  it('the statistics of a queue have its tasks by state', async (broker) => {
    await putIntoEach(broker);
    const stats = await broker.queueStats(QUEUE);
    expect(stats.counts).toEqual(Object.fromEntries(TASK_STATES.map((state) => [state, 1])));
    expect(stats).toMatchObject({ queue: QUEUE, groups: 1, isPaused: false });
    expect(Math.abs(stats.atMs - broker.clock.wallNow())).toBeLessThanOrEqual(1_000);
    await putInto(broker, 'aggregating', { queue: 'other', group: 'a' });
    await putInto(broker, 'aggregating', { queue: 'other', group: 'b' });
    const counts = { ...NOTHING, aggregating: 2 };
    expect(await broker.queueStats('other')).toMatchObject({ groups: 2, counts });
  });

  it('the statistics of a queue have the latency', async (broker, time) => {
    await putInto(broker, 'active');
    expect((await broker.queueStats(QUEUE)).latencyMs).toBe(0);
    await broker.enqueue(newTask());
    await time.advance(2_000);
    await broker.enqueue(newTask());
    const { latencyMs } = await broker.queueStats(QUEUE);
    expect(latencyMs).toBeGreaterThanOrEqual(2_000 - time.precisionMs);
    expect(latencyMs).toBeLessThanOrEqual(4_000 + time.precisionMs);
  });

  it('the statistics of a queue have an estimate of its memory', async (broker) => {
    await putInto(broker, 'pending');
    const empty = (await broker.queueStats(QUEUE)).memoryBytes;
    expect(empty).toBeGreaterThan(0);
    await broker.enqueueMany(Array.from({ length: 20 }, () => newTask({ payload: new Uint8Array(10_000) })));
    const full = (await broker.queueStats(QUEUE)).memoryBytes;
    expect(full - empty).toBeGreaterThan(150_000);
    expect(full - empty).toBeLessThan(400_000);
  });

  it('the statistics of a queue have the runs of today and in total', async (broker) => {
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
    const dayBefore = date(stats.atMs - 86_400_000);
    expect(yesterday).toEqual({ queue: QUEUE, date: dayBefore, processed: 0, failed: 0 });
    expect(more).toEqual([]);
  });

  for (const state of TASK_STATES) {
    it(`a list of tasks that are ${state} has those and no others`, async (broker) => {
      await putIntoEach(broker);
      const [record, ...more] = await broker.tasks(QUEUE, state, page);
      expect(more).toEqual([]);
      expect(record).toMatchObject({ state, message: { id: state } });
      const alone = await broker.task(QUEUE, state);
      expect({ ...record, nextProcessAtMs: 0 }).toEqual({ ...alone, nextProcessAtMs: 0 });
    });
  }

  it('pending tasks are listed in pages, in the order in which they are processed', async (broker) => {
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
    it(`tasks that are ${state} are listed by time, the earliest first`, async (broker) => {
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
    it(`tasks that are ${state} are listed with the oldest first`, async (broker, time) => {
      for (const id of ['b', 'a', 'c']) {
        await putInto(broker, state, { id });
        await time.advance(time.precisionMs);
      }
      expect(await idsIn(broker, state)).toEqual(['b', 'a', 'c']);
      expect(idsOf(await broker.tasks(QUEUE, state, { page: 2, size: 1 }))).toEqual(['a']);
    });
  }

  it('aggregating tasks of one group can be listed', async (broker, time) => {
    for (const [id, group] of Object.entries({ a: 'x', b: 'y', c: 'x' })) {
      await broker.enqueue(newTask({ id, group }));
      await time.advance(time.precisionMs);
    }
    expect(await idsIn(broker, 'aggregating', 'x')).toEqual(['a', 'c']);
    expect(await idsIn(broker, 'aggregating', 'y')).toEqual(['b']);
    expect(await idsIn(broker, 'aggregating', 'z')).toEqual([]);
    expect((await idsIn(broker, 'aggregating')).sort()).toEqual(['a', 'b', 'c']);
    expect(idsOf(await broker.tasks(QUEUE, 'aggregating', { page: 2, size: 1 }, 'x'))).toEqual(['c']);
  });

  describe('a scan', () => {
    it('a scan finds every task of the states that it reads, as it is', async (broker) => {
      await putIntoEach(broker);
      for (const states of [TASK_STATES, ['retry', 'archived'], ['aggregating'], []] as const) {
        const records = await scanAll(broker, states, 2);
        expect(idsOf(records).sort()).toEqual([...states].sort());
        for (const record of records)
          expect(record).toEqual({ ...(await broker.task(QUEUE, record.message.id)), ...nextOf(record) });
      }
    });

    it('a scan finds aggregating tasks of all groups and of sets', async (broker) => {
      for (const [id, group] of Object.entries({ a: 'x', b: 'y', c: 'x', d: 'z' }))
        await broker.enqueue(newTask({ id, group }));
      await broker.takeGroup(QUEUE, 'x', { graceMs: 0, maxDelayMs: 0, maxSize: 2 }, LONG_MS);
      expect(idsOf(await scanAll(broker, ['aggregating'], 1)).sort()).toEqual(['a', 'b', 'c', 'd']);
    });

    it('an empty queue has nothing to scan', async (broker) => {
      await broker.setLimits(QUEUE, { concurrency: 1 });
      expect(await scanAll(broker, TASK_STATES, 10)).toEqual([]);
    });

    const changes: Record<string, (broker: Broker, ids: readonly string[]) => Promise<unknown>> = {
      'are removed': (broker, ids) => removeAll(broker, ids),
      'are added': (broker) =>
        broker.enqueueMany([{}, { key: 'a' }, { key: 'x' }, { group: 'g' }].map((parts) => newTask(parts))),
      'are processed': async (broker) => {
        for (const task of await broker.dequeue(QUEUE, 3, LONG_MS)) await broker.complete(task);
      },
      'fail, are removed and are added': async (broker, ids) => {
        for (const task of await broker.dequeue(QUEUE, 2, LONG_MS))
          await broker.retry(task, failure(), broker.clock.wallNow() + LONG_MS);
        await removeAll(broker, ids.slice(1));
        await broker.enqueueMany([newTask(), newTask({ processAtMs: broker.clock.wallNow() + LONG_MS / 2 })]);
      },
    };
    for (const [name, change] of Object.entries(changes)) {
      it(`a scan misses none of the tasks that stay in their state while others ${name}`, async (broker) => {
        const states = ['pending', 'scheduled', 'retry', 'aggregating'] as const;
        await putMany(broker);
        const before = await everywhere(broker, states);
        const found: TaskRecord[] = [];
        await scanAll(broker, states, 7, async (tasks) => {
          found.push(...tasks);
          await change(broker, idsOf(tasks));
        });
        const after = new Set(await everywhere(broker, states));
        const read = new Set(found.map(nameOf));
        expect(before.filter((task) => after.has(task) && !read.has(task))).toEqual([]);
        expect(found.length).toBeLessThan(3 * before.length);
      });
    }
  });

  it('pages, days and limits that are not valid are rejected', async (broker) => {
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
    await expectCode('ERR_OUT_OF_RANGE', broker.scan(QUEUE, ['pending'], 0));
    await expectCode('ERR_OUT_OF_RANGE', broker.dequeue(QUEUE, -1, LONG_MS));
    await expectCode('ERR_OUT_OF_RANGE', broker.dequeue(QUEUE, 1, NaN));
    expect(await idsIn(broker, 'pending')).toHaveLength(1);
  });
}

/** Scans to the end. @param onPiece - called with each piece. */
async function scanAll(
  broker: Broker,
  states: readonly TaskState[],
  limit: number,
  onPiece?: (tasks: readonly TaskRecord[]) => Promise<void>,
): Promise<TaskRecord[]> {
  const all: TaskRecord[] = [];
  let from: ScanPosition | undefined;
  do {
    const { tasks, next } = await broker.scan(QUEUE, states, limit, from);
    expect(tasks.length).toBeLessThanOrEqual(limit);
    await onPiece?.(tasks);
    all.push(...tasks);
    from = next;
  } while (from !== undefined);
  return all;
}

/** Tasks with and without keys, tasks that are due at the same time, tasks that have failed, and groups. */
async function putMany(broker: Broker): Promise<void> {
  const ids = Array.from({ length: 30 }, (_, nth) => String(nth).padStart(2, '0'));
  const laterMs = broker.clock.wallNow() + LONG_MS;
  await broker.enqueueMany(ids.map((id) => newTask({ id: `r${id}` })));
  for (const [nth, task] of (await broker.dequeue(QUEUE, 30, LONG_MS)).entries())
    await broker.retry(task, failure(), laterMs + (nth % 3) * 60_000);
  await broker.enqueueMany(ids.map((id) => newTask({ id: `p${id}` })));
  await broker.enqueueMany(ids.map((id, nth) => newTask({ id: `k${id}`, key: nth % 2 === 0 ? 'a' : 'bb' })));
  await broker.enqueueMany(ids.map((id) => newTask({ id: `s${id}`, processAtMs: laterMs })));
  await broker.enqueueMany(ids.map((id) => newTask({ id: `g${id}`, group: 'g' })));
}

async function removeAll(broker: Broker, ids: readonly string[]): Promise<void> {
  for (const id of ids) await broker.change(QUEUE, { id }, 'delete').catch(() => 0);
}

const nameOf = ({ state, message }: TaskRecord): string => `${state} ${message.id}`;

async function everywhere(broker: Broker, states: readonly TaskState[]): Promise<string[]> {
  const lists = states.map((state) => broker.tasks(QUEUE, state, { page: 1, size: 1_000 }));
  return (await Promise.all(lists)).flat().map(nameOf);
}

/** A pending task is due when it is read. */
function nextOf({ nextProcessAtMs }: TaskRecord): Pick<TaskRecord, 'nextProcessAtMs'> {
  return { nextProcessAtMs };
}
