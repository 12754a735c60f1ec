import type { Broker, NewTask, TaskState } from 'escapement/tasks';
import { describe, expect } from 'vitest';
import {
  caseWith,
  expectCode,
  failure,
  idsIn,
  idsOf,
  LONG_MS,
  MINUTE_MS,
  newTask,
  putInto,
  QUEUE,
  stateOf,
  take,
  takeAll,
  takeSet,
  type BrokerFactory,
  type TaskParts,
} from './support.ts';

const KEY = 'asynq:{default}:unique::account-42';
const OLD = new Uint8Array([1]);
const NEW = new Uint8Array([2]);
const TICK = { entryKey: 'entry', atMs: 1_000_000_000_000 };

function duplicate(onDuplicate: NewTask['onDuplicate'], parts: TaskParts = {}): NewTask {
  return { ...newTask({ uniqueKey: KEY, payload: NEW, ...parts }), ...(onDuplicate && { onDuplicate }) };
}

async function countOf(broker: Broker): Promise<number> {
  const { counts } = await broker.queueStats(QUEUE);
  return Object.values(counts).reduce((sum, count) => sum + count, 0);
}

/** What follows from the new task: its state, and the parts that bring it there. */
const MOVES: readonly (readonly [string, TaskState, (broker: Broker) => TaskParts])[] = [
  ['now', 'pending', () => ({})],
  ['for later', 'scheduled', (broker: Broker) => ({ processAtMs: broker.clock.wallNow() + 2 * LONG_MS })],
  ['in a group', 'aggregating', () => ({ group: 'other' })],
];

export function describeDuplicates(make: BrokerFactory): void {
  const it = caseWith(make);

  describe.each(['replace', 'extend'] as const)('a duplicate with onDuplicate: %o', (onDuplicate) => {
    it('a task that is the first with its key is added', async (broker) => {
      const task = duplicate(onDuplicate);
      expect(await broker.enqueue(task)).toMatchObject({ state: 'pending', message: task.message });
      expect(await takeAll(broker)).toEqual([task.message.id]);
    });

    for (const state of ['pending', 'scheduled', 'retry', 'aggregating'] as const) {
      for (const [when, expected, partsOf] of MOVES) {
        it(`a task that is ${state} becomes the duplicate that is enqueued ${when}`, async (broker, time) => {
          const old = { uniqueKey: KEY, payload: OLD, headers: { of: 'old' } };
          const { id } = await putInto(broker, state, old);
          const parts = { ...partsOf(broker), type: 'other', maxRetry: 3, headers: { of: 'new' } };
          const task = duplicate(onDuplicate, parts);
          const isRetry = state === 'retry';
          const [retried, lastError] = isRetry ? [1, 'it failed'] : [0, ''];
          const record = await broker.enqueue(task);
          expect(record.state).toBe(expected);
          const message = { ...task.message, id, retried, lastError };
          expect(record.message).toEqual({ ...message, lastFailedAtMs: record.message.lastFailedAtMs });
          const found = await broker.task(QUEUE, id);
          expect(found).toMatchObject({ state: expected, message: record.message });
          if (parts.processAtMs !== undefined) {
            expect(found.nextProcessAtMs).toBeGreaterThanOrEqual(parts.processAtMs);
            expect(found.nextProcessAtMs).toBeLessThanOrEqual(parts.processAtMs + time.precisionMs);
          }
          expect(await idsIn(broker, expected)).toEqual([id]);
          expect(await countOf(broker)).toBe(1);
          const groups = (await broker.groups(QUEUE)).map(({ group }) => group);
          expect(groups).toEqual(expected === 'aggregating' ? ['other'] : []);
          await expectCode('ERR_TASK_DUPLICATE', broker.enqueue(duplicate(undefined)));
        });
      }
    }

    it('a pending task that becomes the duplicate keeps its place in the queue', async (broker) => {
      const tasks = [newTask(), duplicate(undefined, { payload: OLD }), newTask()];
      for (const task of tasks) await broker.enqueue(task);
      await broker.enqueue(duplicate(onDuplicate));
      const leased = await broker.dequeue(QUEUE, 10, LONG_MS);
      expect(idsOf(leased)).toEqual(idsOf(tasks));
      expect(leased[1]?.message.payload).toEqual(NEW);
    });

    it('a task that runs is not replaced', async (broker) => {
      const { id } = await putInto(broker, 'active', { uniqueKey: KEY, payload: OLD });
      await expectCode('ERR_TASK_DUPLICATE', broker.enqueue(duplicate(onDuplicate)));
      expect((await broker.task(QUEUE, id)).message.payload).toEqual(OLD);
    });

    it('a task that is being aggregated is not replaced', async (broker) => {
      await broker.enqueue(duplicate(undefined, { group: 'group', payload: OLD }));
      expect((await takeSet(broker, 'group')).messages).toHaveLength(1);
      await expectCode('ERR_TASK_DUPLICATE', broker.enqueue(duplicate(onDuplicate)));
    });

    it('the run of the new task frees the lock', async (broker) => {
      await putInto(broker, 'scheduled', { uniqueKey: KEY });
      await broker.enqueue(duplicate(onDuplicate));
      await broker.complete(await take(broker));
      await broker.enqueue(duplicate(undefined));
    });

    it('many duplicates at once leave one task, which has the message of one of them', async (broker) => {
      const tasks = Array.from({ length: 20 }, (_, nth) =>
        duplicate(onDuplicate, { payload: new Uint8Array([nth]) }),
      );
      const records = await Promise.all(tasks.map((task) => broker.enqueue(task)));
      const [leased, ...others] = await broker.dequeue(QUEUE, 100, LONG_MS);
      expect(others).toEqual([]);
      expect(new Set(records.map(({ message }) => message.id))).toEqual(new Set([leased?.message.id]));
      expect(tasks.map(({ message }) => message.payload)).toContainEqual(leased?.message.payload);
    });

    it('each of many tasks is added or replaced by itself', async (broker) => {
      const tasks = [newTask(), duplicate(undefined), duplicate(onDuplicate), newTask()];
      const outcomes = await broker.enqueueMany(tasks);
      expect(outcomes.map(({ status }) => status)).toEqual(Array(4).fill('fulfilled'));
      expect(await countOf(broker)).toBe(3);
    });

    it('a tick of a schedule replaces a task once, however many schedulers enqueue it', async (broker) => {
      const { id } = await putInto(broker, 'scheduled', { uniqueKey: KEY, payload: OLD });
      const ticks = Array.from({ length: 5 }, () => broker.enqueueTick(duplicate(onDuplicate), TICK));
      const records = (await Promise.all(ticks)).filter((record) => record !== undefined);
      expect(records.map(({ message }) => message.id)).toEqual([id]);
      expect(await takeAll(broker)).toEqual([id]);
      expect(await broker.enqueueTick(duplicate(onDuplicate), TICK)).toBeUndefined();
      expect(await broker.lastTickMs(QUEUE, TICK.entryKey)).toBe(TICK.atMs);
    });

    it('a tick that a running task refuses counts as added', async (broker) => {
      await putInto(broker, 'active', { uniqueKey: KEY });
      await expectCode('ERR_TASK_DUPLICATE', broker.enqueueTick(duplicate(onDuplicate), TICK));
      expect(await broker.enqueueTick(duplicate(onDuplicate), TICK)).toBeUndefined();
    });

    it('a task whose lock has ended is not replaced', async (broker, time) => {
      await broker.enqueue(duplicate(undefined, { uniqueTtlMs: MINUTE_MS }));
      await time.advance(2 * MINUTE_MS);
      await broker.enqueue(duplicate(onDuplicate));
      expect(await countOf(broker)).toBe(2);
    });
  });

  it('the lock of a task that was replaced ends when it would have ended', async (broker, time) => {
    await broker.enqueue(duplicate(undefined, { uniqueTtlMs: 3 * MINUTE_MS }));
    await time.advance(2 * MINUTE_MS);
    await broker.enqueue(duplicate('replace', { uniqueTtlMs: 3 * MINUTE_MS }));
    await time.advance(2 * MINUTE_MS);
    await broker.enqueue(duplicate(undefined));
    expect(await countOf(broker)).toBe(2);
  });

  it('the lock of a task that was extended starts anew, with the time until the task is due', async (broker, time) => {
    await broker.enqueue(duplicate(undefined, { uniqueTtlMs: MINUTE_MS }));
    const processAtMs = broker.clock.wallNow() + 2 * MINUTE_MS;
    await broker.enqueue(duplicate('extend', { uniqueTtlMs: 2 * MINUTE_MS, processAtMs }));
    await time.advance(3 * MINUTE_MS);
    await expectCode('ERR_TASK_DUPLICATE', broker.enqueue(duplicate(undefined)));
    await time.advance(2 * MINUTE_MS);
    await broker.enqueue(duplicate(undefined));
  });

  it('a task that has failed and waits keeps its retries and what it has reported when it is replaced', async (broker) => {
    await broker.enqueue(duplicate(undefined, { maxRetry: 1 }));
    const failing = await take(broker);
    await broker.writeResult(failing, OLD);
    await broker.writeProgress(failing, '{"percent":50}');
    await broker.retry(failing, failure('first'), broker.clock.wallNow() + LONG_MS);
    const [failed] = await broker.tasks(QUEUE, 'retry', { page: 1, size: 1 });
    const { lastFailedAtMs } = failed?.message ?? {};
    const { result, progress } = await broker.enqueue(duplicate('replace', { maxRetry: 1 }));
    expect({ result, progress }).toStrictEqual({ result: OLD, progress: '{"percent":50}' });
    const leased = await take(broker);
    expect(leased.message).toMatchObject({ retried: 1, lastError: 'first', lastFailedAtMs, payload: NEW });
    await broker.archive(leased, failure());
    expect(await stateOf(broker, leased.message)).toBe('archived');
  });
}
