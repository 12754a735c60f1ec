import { expect } from 'vitest';
import {
  caseWith,
  catchUp,
  expectCode,
  failure,
  idsIn,
  idsOf,
  LONG_MS,
  newTask,
  putInto,
  QUEUE,
  recoverOne,
  stateOf,
  take,
  takeAll,
  type BrokerFactory,
} from './support.ts';

const WORKER_LOST = { error: 'gone', isFailure: false, isRecovery: true };

export function describeForwarding(make: BrokerFactory): void {
  const it = caseWith(make);

  it('a scheduled task is pending when it is due, and not before', async (broker, time) => {
    const message = newTask({ processAtMs: 0 }).message;
    await broker.enqueue({ message, processAtMs: broker.clock.wallNow() + 3_000, uniqueTtlMs: 0 });
    await time.advance(1_500);
    await catchUp(broker);
    expect(await stateOf(broker, message)).toBe('scheduled');
    await time.pass(1_500);
    await catchUp(broker);
    expect(await stateOf(broker, message)).toBe('pending');
  });

  it('due tasks are added behind the pending tasks, in order of their time', async (broker, time) => {
    const nowMs = broker.clock.wallNow();
    await broker.enqueue(newTask({ id: 'third', processAtMs: nowMs + 5_000 }));
    await broker.enqueue(newTask({ id: 'first', processAtMs: nowMs + 1_000 }));
    await broker.enqueue(newTask({ id: 'second', processAtMs: nowMs + 3_000 }));
    await broker.enqueue(newTask({ id: 'pending' }));
    await time.pass(5_000);
    await catchUp(broker);
    expect(await takeAll(broker)).toEqual(['pending', 'first', 'second', 'third']);
  });

  it('forward moves due tasks that the broker has not moved by itself', async (broker, time) => {
    const processAtMs = broker.clock.wallNow() + 1_000;
    for (const queue of [QUEUE, QUEUE, 'other']) await broker.enqueue(newTask({ queue, processAtMs }));
    await broker.enqueue(newTask({ processAtMs: broker.clock.wallNow() + LONG_MS }));
    await time.pass(1_000);
    expect(await broker.forward([QUEUE, 'nowhere'])).toBe(broker.maintenance.includes('forward') ? 2 : 0);
    expect(await broker.forward([QUEUE, 'other'])).toBe(broker.maintenance.includes('forward') ? 1 : 0);
    expect(await broker.forward([])).toBe(0);
    expect(await broker.queues()).not.toContain('nowhere');
  });

  it('a due task with a group is added to the group, also after a run, and the group is listed', async (broker, time) => {
    const message = await putInto(broker, 'aggregating', { group: 'g' });
    await broker.change(QUEUE, { id: message.id }, 'run');
    expect(await broker.groups(QUEUE)).toEqual([]);
    await broker.retry(await take(broker), failure(), broker.clock.wallNow() + 2_000);
    await time.pass(2_000);
    await catchUp(broker);
    expect(await stateOf(broker, message)).toBe('aggregating');
    expect(await broker.groups(QUEUE)).toEqual([{ group: 'g', size: 1 }]);
  });

  it('a task whose lease has ended is active and orphaned until it is recovered', async (broker, time) => {
    await broker.enqueue(newTask());
    const lost = await take(broker, QUEUE, 2_000);
    expect(await broker.recover([QUEUE], 0, LONG_MS)).toEqual([]);
    await time.pass(2_000);
    const record = await broker.task(QUEUE, lost.message.id);
    expect(record).toMatchObject({ state: 'active', isOrphaned: true });
    expect(await takeAll(broker)).toEqual([]);

    const recovered = await recoverOne(broker);
    expect(recovered.message).toEqual(lost.message);
    expect(recovered.epoch).toBeGreaterThan(lost.epoch);
    expect((await broker.task(QUEUE, lost.message.id)).isOrphaned).toBe(false);
    expect(await broker.recover([QUEUE], 0, LONG_MS)).toEqual([]);
    await expectCode('ERR_LEASE_LOST', broker.complete(lost));
    await broker.complete(recovered);
    expect(await stateOf(broker, lost.message)).toBe('gone');
  });

  it('a lease is recovered only after the grace', async (broker, time) => {
    await broker.enqueue(newTask());
    const task = await take(broker, QUEUE, 1_000);
    await time.pass(2_000);
    expect(await broker.recover([QUEUE], 30_000, LONG_MS)).toEqual([]);
    // No other caller has leased it: the lease is still valid.
    await broker.complete(task);
  });

  it('a lease that has ended can be extended until the task is recovered', async (broker, time) => {
    await broker.enqueue(newTask());
    const task = await take(broker, QUEUE, 1_000);
    await time.pass(1_000);
    expect(await broker.extendLeases([task], LONG_MS)).toEqual([]);
    expect((await broker.task(QUEUE, task.message.id)).isOrphaned).toBe(false);
    expect(await broker.recover([QUEUE], 0, LONG_MS)).toEqual([]);
    await broker.complete(task);
  });

  it('a task is recovered once, and only in the given queues', async (broker, time) => {
    for (const queue of ['a', 'b', 'c']) {
      await broker.enqueue(newTask({ queue }));
      await take(broker, queue, 1_000);
    }
    await time.pass(1_000);
    const calls = [broker.recover(['a', 'b'], 0, LONG_MS), broker.recover(['b', 'a', 'a'], 0, LONG_MS)];
    const recovered = (await Promise.all(calls)).flat();
    expect(recovered.map(({ message }) => message.queue).sort()).toEqual(['a', 'b']);
    expect(await broker.recover(['nowhere'], 0, LONG_MS)).toEqual([]);
  });

  it('a recovered task is recovered again when its new lease ends', async (broker, time) => {
    await broker.enqueue(newTask());
    await take(broker, QUEUE, 1_000);
    await time.pass(1_000);
    const first = await recoverOne(broker, 1_000);
    await time.pass(1_000);
    expect((await recoverOne(broker)).epoch).toBeGreaterThan(first.epoch);
  });

  it('a retry with isRecovery counts as a recovery', async (broker, time) => {
    await broker.enqueue(newTask());
    for (const recoveries of [0, 1]) {
      expect((await take(broker, QUEUE, 1_000)).recoveries).toBe(recoveries);
      await time.pass(1_000);
      const task = await recoverOne(broker);
      expect(task.recoveries).toBe(recoveries);
      await broker.retry(task, WORKER_LOST, broker.clock.wallNow() + LONG_MS);
      expect(await broker.change(QUEUE, { state: 'retry' }, 'run')).toBe(1);
    }
    const task = await take(broker);
    expect([task.recoveries, task.message.retried]).toEqual([2, 0]);
  });

  it('the recoveries of a task are counted from 0 after it was archived', async (broker, time) => {
    await broker.enqueue(newTask());
    const atMs = broker.clock.wallNow();
    await broker.retry(await take(broker), WORKER_LOST, atMs);
    for (const archive of [
      async () => broker.change(QUEUE, { state: 'retry' }, 'archive'),
      async () => broker.archive(await take(broker), failure()),
    ]) {
      await archive();
      expect(await broker.change(QUEUE, { state: 'archived' }, 'run')).toBe(1);
      const task = await take(broker, QUEUE, 1_000);
      expect(task.recoveries).toBe(0);
      await time.pass(1_000);
      await broker.retry(await recoverOne(broker), WORKER_LOST, atMs);
      await broker.change(QUEUE, { state: 'retry' }, 'run');
    }
  });

  it('the end of a lease has no effect once the task is done', async (broker, time) => {
    await broker.enqueue(newTask({ retentionMs: LONG_MS }));
    await broker.complete(await take(broker, QUEUE, 1_000));
    await broker.enqueue(newTask());
    await broker.release(await take(broker, QUEUE, 1_000));
    await time.pass(1_000);
    expect(await broker.recover([QUEUE], 0, LONG_MS)).toEqual([]);
  });

  it('a completed task is deleted when its retention has ended, and no other task', async (broker, time) => {
    for (const [id, retentionMs] of Object.entries({ short: 1_000, long: LONG_MS, middle: 2_000 })) {
      await broker.enqueue(newTask({ id, retentionMs }));
      await broker.complete(await take(broker));
    }
    await putInto(broker, 'archived', { id: 'archived' });
    expect(idsOf(await broker.tasks(QUEUE, 'completed', { page: 1, size: 10 }))).toHaveLength(3);
    await time.advance(2_000 + 2 * time.precisionMs);
    const count = await broker.deleteExpired([QUEUE, 'nowhere'], 1);
    expect(count).toBe(broker.maintenance.includes('deleteExpired') ? 1 : 0);
    await catchUp(broker);
    expect(await idsIn(broker, 'completed')).toEqual(['long']);
    expect(await idsIn(broker, 'archived')).toEqual(['archived']);
  });
}
