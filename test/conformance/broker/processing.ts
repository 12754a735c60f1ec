import type { Broker, LeasedTask, TaskFailure } from 'escapement/tasks';
import { expect } from 'vitest';
import {
  caseWith,
  catchUp,
  EVERY_BYTE,
  everythingOf,
  expectCode,
  failure,
  LONG_MS,
  newTask,
  putInto,
  QUEUE,
  stateOf,
  take,
  takeAll,
  type BrokerFactory,
  lockKey,
} from './support.ts';

const later = (broker: Broker): number => broker.clock.wallNow() + LONG_MS;

/** What a worker does with a task that it has leased. */
const WRITES: Record<string, (broker: Broker, task: LeasedTask) => Promise<unknown>> = {
  complete: (broker, task) => broker.complete(task),
  retry: (broker, task) => broker.retry(task, failure('stale'), later(broker)),
  archive: (broker, task) => broker.archive(task, failure('stale')),
  release: (broker, task) => broker.release(task),
  discard: (broker, task) => broker.discard(task),
  writeResult: (broker, task) => broker.writeResult(task, Uint8Array.of(9)),
  writeProgress: (broker, task) => broker.writeProgress(task, '"stale"'),
};

/** What ends a lease. */
const ENDINGS: Record<string, (broker: Broker, task: LeasedTask) => Promise<unknown>> = {
  'it was completed': (broker, task) => broker.complete(task),
  'it was retried': (broker, task) => broker.retry(task, failure(), later(broker)),
  'it was archived': (broker, task) => broker.archive(task, failure()),
  'it was released': (broker, task) => broker.release(task),
  'it was discarded': (broker, task) => broker.discard(task),
  'it was released and leased anew': async (broker, task) => {
    await broker.release(task);
    await take(broker);
  },
  'another one has its id, and is leased': async (broker, task) => {
    await broker.discard(task);
    await broker.enqueue(newTask({ id: task.message.id }));
    await take(broker);
  },
  'its queue was removed': async (broker, task) => {
    await broker.discard(task);
    await broker.removeQueue(QUEUE, { force: true });
    await broker.enqueue(newTask());
  },
};

export function describeProcessing(make: BrokerFactory): void {
  const it = caseWith(make);

  it('dequeue leases the first tasks in order, at most limit', async (broker) => {
    const tasks = Array.from({ length: 5 }, () => newTask());
    for (const task of tasks) await broker.enqueue(task);
    const ids = tasks.map(({ message }) => message.id);
    const first = await broker.dequeue(QUEUE, 2, LONG_MS);
    expect(first.map(({ message }) => message.id)).toEqual(ids.slice(0, 2));
    expect(await takeAll(broker)).toEqual(ids.slice(2));
    expect(await takeAll(broker)).toEqual([]);
  });

  it('dequeue of a queue that does not exist returns no tasks and creates no queue', async (broker) => {
    expect(await broker.dequeue('nowhere', 10, LONG_MS)).toEqual([]);
    expect(await broker.queues()).toEqual([]);
  });

  it('a task is leased to one caller only', async (broker) => {
    await broker.enqueueMany(Array.from({ length: 40 }, () => newTask()));
    const taken = await Promise.all(Array.from({ length: 20 }, () => broker.dequeue(QUEUE, 3, LONG_MS)));
    const ids = taken.flat().map(({ message }) => message.id);
    expect([ids.length, new Set(ids).size]).toEqual([40, 40]);
  });

  it('dequeue makes a task active', async (broker) => {
    const message = await putInto(broker, 'active');
    const record = await broker.task(QUEUE, message.id);
    expect(record).toMatchObject({ state: 'active', nextProcessAtMs: 0, isOrphaned: false });
  });

  it('the epoch grows with every lease', async (broker) => {
    await broker.enqueue(newTask());
    const first = await take(broker);
    await broker.release(first);
    const second = await take(broker);
    expect(second.epoch).toBeGreaterThan(first.epoch);
    expect([first.recoveries, second.recoveries]).toEqual([0, 0]);
  });

  it('a completed task without retention is removed, and counts as processed', async (broker) => {
    const message = await putInto(broker, 'pending');
    await broker.complete(await take(broker));
    expect(await stateOf(broker, message)).toBe('gone');
    const counts = { processed: 1, failed: 0, processedTotal: 1, failedTotal: 0 };
    expect(await broker.queueStats(QUEUE)).toMatchObject(counts);
  });

  it('a completed task is retained with its result for its retention', async (broker, time) => {
    await broker.enqueue(newTask({ id: 'a', retentionMs: 2_000 }));
    const task = await take(broker);
    await broker.writeResult(task, EVERY_BYTE);
    await broker.complete(task);
    const record = await broker.task(QUEUE, 'a');
    expect(record).toMatchObject({ state: 'completed', nextProcessAtMs: 0, isOrphaned: false });
    const [listed] = await broker.tasks(QUEUE, 'completed', { page: 1, size: 1 });
    for (const { result } of [record, listed ?? record])
      expect(Buffer.from(result ?? [])).toEqual(EVERY_BYTE);
    const { completedAtMs } = record.message;
    expect(Math.abs(completedAtMs - broker.clock.wallNow())).toBeLessThanOrEqual(1_000 + time.precisionMs);
    await time.advance(2_000 + 2 * time.precisionMs);
    await catchUp(broker);
    expect(await stateOf(broker, record.message)).toBe('gone');
  });

  it('a revoked task is removed with its lock whatever its own retention is, and counts as processed', async (broker) => {
    const parts = { retentionMs: LONG_MS, uniqueKey: lockKey('only-one') };
    const message = await putInto(broker, 'pending', parts);
    const task = await take(broker);
    await broker.complete({ ...task, message: { ...task.message, retentionMs: 0 } });
    expect(await stateOf(broker, message)).toBe('gone');
    expect(await broker.queueStats(QUEUE)).toMatchObject({ processed: 1, failed: 0 });
    await broker.enqueue(newTask(parts));
  });

  it('a failed task waits for its retry and has the error', async (broker, time) => {
    const message = await putInto(broker, 'pending');
    const atMs = later(broker);
    await broker.retry(await take(broker), failure('boom'), atMs);
    const record = await broker.task(QUEUE, message.id);
    const { lastFailedAtMs } = record.message;
    expect(record.state).toBe('retry');
    expect(record.message).toMatchObject({ ...message, retried: 1, lastError: 'boom', lastFailedAtMs });
    expect(record.nextProcessAtMs).toBeGreaterThanOrEqual(atMs);
    expect(record.nextProcessAtMs).toBeLessThanOrEqual(atMs + time.precisionMs);
    expect(Math.abs(lastFailedAtMs - broker.clock.wallNow())).toBeLessThanOrEqual(1_000 + time.precisionMs);
    const counts = { processed: 1, failed: 1, processedTotal: 1, failedTotal: 1 };
    expect(await broker.queueStats(QUEUE)).toMatchObject(counts);
  });

  it('a failed task is pending at the time of its retry, behind the other pending tasks', async (broker, time) => {
    await broker.enqueue(newTask({ id: 'a' }));
    await broker.retry(await take(broker), failure(), broker.clock.wallNow() + 2_000);
    await broker.enqueue(newTask({ id: 'b' }));
    expect(await stateOf(broker, newTask({ id: 'a' }).message)).toBe('retry');
    await time.pass(2_000);
    await catchUp(broker);
    expect(await takeAll(broker)).toEqual(['b', 'a']);
  });

  it('a retry without isFailure does not count as failed', async (broker) => {
    const { id } = await putInto(broker, 'pending');
    await broker.retry(await take(broker), { error: 'rate limited', isFailure: false }, later(broker));
    expect((await broker.task(QUEUE, id)).message).toMatchObject({ retried: 0, lastError: 'rate limited' });
    expect(await broker.queueStats(QUEUE)).toMatchObject({ processed: 0, failed: 0 });
  });

  it('a failure whose error is no text is refused, and the task stays with its worker', async (broker) => {
    await putInto(broker, 'pending');
    const leased = await take(broker);
    for (const given of [
      { error: undefined, isFailure: true },
      { error: 5, isFailure: true },
      undefined,
      null,
    ]) {
      const invalid = given as unknown as TaskFailure;
      await expectCode('ERR_INVALID_ARG_TYPE', broker.retry(leased, invalid, later(broker)));
      await expectCode('ERR_INVALID_ARG_TYPE', broker.archive(leased, invalid));
    }
    await broker.complete(leased);
  });

  it('a task that failed for the last time is archived, counts as failed, and keeps its count of retries', async (broker) => {
    const { id } = await putInto(broker, 'pending', { maxRetry: 1, retried: 1 });
    await broker.archive(await take(broker), failure('for good'));
    const record = await broker.task(QUEUE, id);
    const message = { retried: 1, lastError: 'for good' };
    expect(record).toMatchObject({ state: 'archived', nextProcessAtMs: 0, message });
    expect(record.message.lastFailedAtMs).toBeGreaterThan(0);
    expect(await broker.queueStats(QUEUE)).toMatchObject({ processed: 1, failed: 1 });
  });

  it('a released task is the next one, and does not count', async (broker) => {
    for (const id of ['a', 'b', 'c']) await broker.enqueue(newTask({ id }));
    const [a, b] = await broker.dequeue(QUEUE, 2, LONG_MS);
    if (a === undefined || b === undefined) throw new Error('there were two');
    await broker.release(b);
    await broker.release(a);
    expect(await broker.queueStats(QUEUE)).toMatchObject({ processed: 0, failed: 0 });
    expect(await takeAll(broker)).toEqual(['a', 'b', 'c']);
    expect((await broker.task(QUEUE, 'a')).message).toEqual(a.message);
  });

  it('a discarded task is removed although it has a retention, and does not count', async (broker) => {
    const message = await putInto(broker, 'pending', { retentionMs: LONG_MS });
    await broker.discard(await take(broker));
    expect(await stateOf(broker, message)).toBe('gone');
    expect(await broker.queueStats(QUEUE)).toMatchObject({ processed: 0, failed: 0 });
  });

  it('a task has its latest result and progress, also after a failure', async (broker) => {
    const { id } = await putInto(broker, 'pending');
    const task = await take(broker);
    for (const result of [Uint8Array.of(1), Buffer.of(1)]) {
      await broker.writeResult(task, result);
      result[0] = 7;
      expect([...((await broker.task(QUEUE, id)).result ?? [])]).toEqual([1]);
    }
    await broker.writeResult(task, Buffer.of(2, 3)); // stays until the log of a folder is checked
    await broker.writeProgress(task, '{"percent":10}');
    await broker.writeProgress(task, '{"percent":20}');
    await broker.retry(task, failure(), later(broker));
    const record = await broker.task(QUEUE, id);
    expect([...(record.result ?? [])]).toEqual([2, 3]);
    expect(record.progress).toBe('{"percent":20}');
  });

  for (const [ending, end] of Object.entries(ENDINGS)) {
    it(`a lease is lost when ${ending}, and operations with it change nothing`, async (broker) => {
      await broker.enqueue(newTask({ retentionMs: LONG_MS }));
      const task = await take(broker);
      await end(broker, task);
      const before = await everythingOf(broker);
      for (const write of Object.values(WRITES)) await expectCode('ERR_LEASE_LOST', write(broker, task));
      expect(await broker.extendLeases([task], LONG_MS)).toEqual([task]);
      expect(await everythingOf(broker)).toEqual(before);
    });
  }

  it('a lease is identified by id and epoch, not by the object', async (broker) => {
    const message = await putInto(broker, 'pending');
    const { epoch, recoveries } = await take(broker);
    await expectCode('ERR_LEASE_LOST', broker.complete({ message, epoch: epoch + 1, recoveries }));
    await broker.complete({ message, epoch, recoveries });
    expect(await stateOf(broker, message)).toBe('gone');
  });

  it('a lease in a queue that does not exist is lost', async (broker) => {
    const { message } = newTask({ queue: 'nowhere' });
    await expectCode('ERR_LEASE_LOST', broker.complete({ message, epoch: 1, recoveries: 0 }));
    expect(await broker.queues()).toEqual([]);
  });

  it('extendLeases returns the tasks whose lease is lost', async (broker, time) => {
    await broker.enqueueMany([newTask(), newTask(), newTask()]);
    const [a, b, c] = await broker.dequeue(QUEUE, 3, 4_000);
    if (a === undefined || b === undefined || c === undefined) throw new Error('there were three');
    await broker.complete(b);
    expect(await broker.extendLeases([a, b], LONG_MS)).toEqual([b]);
    await time.pass(4_000);
    const orphaned = await Promise.all([a, c].map(({ message }) => broker.task(QUEUE, message.id)));
    expect(orphaned.map(({ isOrphaned }) => isOrphaned)).toEqual([false, true]);
    await broker.complete(a);
  });
}
