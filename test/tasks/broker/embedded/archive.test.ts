import { EmbeddedBroker } from 'escapement/tasks';
import { checkBroker, ManualClock } from 'escapement/testing';
import { describe, expect, test } from 'vitest';
import {
  failure,
  idsIn,
  LONG_MS,
  newTask,
  putInto,
  QUEUE,
  stateOf,
  take,
} from '../../../conformance/broker/support.ts';

const START_MS = 1_795_262_400_000;

async function open(options: { maxArchived?: number; archiveRetentionMs?: number }): Promise<{
  broker: EmbeddedBroker;
  clock: ManualClock;
}> {
  const clock = new ManualClock({ wallMs: START_MS });
  return { clock, broker: await EmbeddedBroker.open({ clock, ...options }) };
}

describe('the archive', () => {
  test('the archive keeps the latest maxArchived tasks, and the ids of the others can be used again', async () => {
    const { broker } = await open({ maxArchived: 3 });
    for (const id of ['a', 'b', 'c']) await putInto(broker, 'archived', { id });
    const { message } = await broker.enqueue(newTask({ id: 'd' }));
    await broker.change(QUEUE, { id: 'd' }, 'archive');
    expect(await idsIn(broker, 'archived')).toEqual(['b', 'c', 'd']);
    expect(await stateOf(broker, { ...message, id: 'a' })).toBe('gone');
    for (let i = 0; i < 5; i++) await broker.enqueue(newTask({ id: `e${i}` }));
    expect(await broker.change(QUEUE, { state: 'pending' }, 'archive')).toBe(5);
    expect(await idsIn(broker, 'archived')).toEqual(['e2', 'e3', 'e4']);
    await broker.enqueue(newTask({ id: 'a' }));
    checkBroker(broker);
  });

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

  test('the archive removes a task after archiveRetentionMs', async () => {
    const { broker, clock } = await open({ archiveRetentionMs: LONG_MS });
    await putInto(broker, 'archived', { id: 'a' });
    await clock.advanceAsync(LONG_MS / 2);
    await putInto(broker, 'archived', { id: 'b' });
    await clock.advanceAsync(LONG_MS / 2);
    expect(await idsIn(broker, 'archived')).toEqual(['b']);
    await clock.advanceAsync(LONG_MS / 2);
    expect(await idsIn(broker, 'archived')).toEqual([]);
    expect(clock.pendingWakeups).toBe(0);
  });
});
