import { Client, EmbeddedBroker, Server, Task } from 'escapement/tasks';
import { checkBroker, ManualClock } from 'escapement/testing';
import { expect, onTestFinished, test, vi } from 'vitest';
import { INTERNALS } from '../../../../src/tasks/broker/embedded/embedded-broker.ts';
import {
  expectCode,
  failure,
  idsIn,
  LONG_MS,
  newTask,
  putInto,
  putIntoEach,
  QUEUE,
  stateOf,
  take,
  takeAll,
} from '../../../conformance/broker/support.ts';
import { SettableClock } from '../../support/settable-clock.ts';

const START_MS = 1_795_262_400_000;
const HOUR_MS = 3_600_000;

async function open(): Promise<{ broker: EmbeddedBroker; clock: SettableClock }> {
  const clock = new SettableClock({ nowMs: 1_000, wallMs: START_MS });
  return { clock, broker: await EmbeddedBroker.open({ clock }) };
}

test('tasks are forwarded, leases end and tasks are removed in the millisecond of their deadline', async () => {
  const { broker, clock } = await open();
  const { message } = await broker.enqueue(newTask({ processAtMs: START_MS + 86_400_001 }));
  await clock.advanceAsync(86_400_000);
  expect(await stateOf(broker, message)).toBe('scheduled');
  await clock.advanceAsync(1);
  expect(await stateOf(broker, message)).toBe('pending');
  await broker.dequeue(QUEUE, 1, 30_000);
  await clock.advanceAsync(29_999);
  expect((await broker.task(QUEUE, message.id)).isOrphaned).toBe(false);
  await clock.advanceAsync(1);
  expect((await broker.task(QUEUE, message.id)).isOrphaned).toBe(true);
});

test('a server takes a task in time under fake timers that replace queueMicrotask, as those of jest do', async () => {
  const toFake = ['setTimeout', 'clearTimeout', 'performance', 'Date', 'queueMicrotask'] as const;
  vi.useFakeTimers({ now: START_MS, toFake: [...toFake] });
  onTestFinished(() => void vi.useRealTimers());
  const broker = await EmbeddedBroker.open();
  const server = new Server({ broker });
  const startedMs: number[] = [];
  await server.start(() => void startedMs.push(Date.now() - START_MS));
  await new Client({ broker }).enqueue(new Task('report'), { processInMs: HOUR_MS });
  await vi.advanceTimersByTimeAsync(24 * HOUR_MS);
  expect(startedMs).toEqual([HOUR_MS]);
  await server.shutdown();
  await broker.close();
});

test('deadlines of all kinds share one wake-up of the clock', async () => {
  const { broker, clock } = await open();
  expect(clock.pendingWakeups).toBe(0);
  await putIntoEach(broker);
  for (let i = 0; i < 1_000; i++) await broker.enqueue(newTask({ processAtMs: START_MS + 1_000 + i }));
  await broker.enqueue(newTask({ group: 'g' }));
  await broker.takeGroup(QUEUE, 'g', { graceMs: 0, maxDelayMs: 0, maxSize: 0 }, 5_000);
  expect(clock.pendingWakeups).toBe(1);
  checkBroker(broker);
  await broker.close();
  expect(clock.pendingWakeups).toBe(0);
});

test('a month without a due task takes no wake-up', async () => {
  const { broker, clock } = await open();
  const timeouts = vi.spyOn(clock, 'setTimeout');
  await broker.enqueue(newTask({ processAtMs: START_MS + 30 * 86_400_000 }));
  await clock.advanceAsync(30 * 86_400_000);
  expect(await takeAll(broker)).toHaveLength(1);
  // One for each wheel that it comes down from.
  expect(timeouts.mock.calls.length).toBeLessThan(10);
});

test.each([
  ['become due together', 0, HOUR_MS],
  ['are due because the wall clock was set forward', HOUR_MS, 60_000],
])('tasks that %s move a thousand in a turn, in order', async (_, aheadMs, afterMs) => {
  const { broker, clock } = await open();
  await broker.subscribe({});
  const ids = Array.from({ length: 2_500 }, (_, i) => `task ${i}`);
  for (const id of ids) await broker.enqueue(newTask({ id, processAtMs: START_MS + HOUR_MS }));
  const pending: number[] = [];
  const count = async (): Promise<void> => {
    const { counts } = await broker.queueStats(QUEUE);
    pending.push(counts.pending);
    if (counts.scheduled > 0) clock.setTimeout(() => void count(), 0);
  };
  clock.setTimeout(() => void count(), afterMs);
  clock.aheadMs = aheadMs;
  await clock.advanceAsync(afterMs);
  expect(pending).toEqual([0, 1_000, 2_000, 2_500]);
  expect(await takeAll(broker)).toEqual(ids);
});

test('a scheduled task waits until the wall clock has reached its time again', async () => {
  const { broker, clock } = await open();
  const scheduled = await putInto(broker, 'scheduled');
  await broker.enqueue(newTask({ id: 'retained', retentionMs: LONG_MS }));
  await broker.complete(await take(broker));
  clock.aheadMs = -60_000;
  await clock.advanceAsync(LONG_MS + 59_999);
  expect(await stateOf(broker, scheduled)).toBe('scheduled');
  expect(await idsIn(broker, 'completed')).toEqual(['retained']);
  expect(clock.pendingWakeups).toBe(1);
  await clock.advanceAsync(1);
  expect(await stateOf(broker, scheduled)).toBe('pending');
  expect(await idsIn(broker, 'completed')).toEqual([]);
});

test('leases and locks last as long as without the change of the wall clock', async () => {
  const { broker, clock } = await open();
  await broker.enqueue(newTask({ uniqueKey: 'key', uniqueTtlMs: 5_000 }));
  await take(broker, QUEUE, 5_000);
  clock.aheadMs = -60_000;
  await clock.advanceAsync(4_999);
  await expectCode('ERR_TASK_DUPLICATE', broker.enqueue(newTask({ uniqueKey: 'key' })));
  expect(await broker.recover([QUEUE], 0, 5_000)).toEqual([]);
  await clock.advanceAsync(1);
  await broker.enqueue(newTask({ uniqueKey: 'key' }));
  expect(await broker.recover([QUEUE], 0, 5_000)).toHaveLength(1);
  checkBroker(broker);
});

test('a task that became due waits for its timer or for a call of forward', async () => {
  const { broker, clock } = await open();
  await broker.enqueue(newTask({ id: 'late', processAtMs: START_MS + 2_000 }));
  await broker.enqueue(newTask({ id: 'early', processAtMs: START_MS + 1_000 }));
  await broker.enqueue(newTask({ id: 'done', retentionMs: 1_000 }));
  await broker.complete(await take(broker));
  clock.aheadMs = LONG_MS;
  expect(await broker.forward([QUEUE])).toBe(2);
  expect(await broker.deleteExpired([QUEUE], 10)).toBe(1);
  expect(await takeAll(broker)).toEqual(['early', 'late']);
  checkBroker(broker);
});

test.each([
  ['before', true],
  ['after', false],
])(
  'tasks that are due run within a minute, in order of time, of a subscription %s them',
  async (_, isFirst) => {
    const { broker, clock } = await open();
    let subscription = isFirst ? await broker.subscribe({}) : undefined;
    await broker.enqueue(newTask({ id: 'later', processAtMs: START_MS + 3 * HOUR_MS }));
    await broker.enqueue(newTask({ id: 'second', processAtMs: START_MS + 2 * HOUR_MS }));
    await broker.enqueue(newTask({ id: 'first', processAtMs: START_MS + HOUR_MS }));
    subscription ??= await broker.subscribe({});
    await clock.advanceAsync(90_000);
    clock.aheadMs = 2 * HOUR_MS;
    await clock.advanceAsync(30_000);
    expect(await takeAll(broker)).toEqual(['first', 'second']);
    expect(await idsIn(broker, 'scheduled')).toEqual(['later']);
    await subscription.close();
    await clock.advanceAsync(60_000);
    expect(clock.pendingWakeups).toBe(1); // of the task that is scheduled
    checkBroker(broker);
    await broker.close();
  },
);

test('nothing wakes up for the wall clock when the last subscription is closed', async () => {
  const { broker, clock } = await open();
  const subscriptions = [await broker.subscribe({}), await broker.subscribe({})];
  for (const subscription of subscriptions) await subscription.close();
  await clock.advanceAsync(60_000);
  expect(clock.pendingWakeups).toBe(0);
});

test('pending deadlines keep the process alive only while there is a subscription', async () => {
  const { broker } = await open();
  const hasRef = (): boolean | undefined => broker[INTERNALS]().store?.timer.hasRef();
  await broker.enqueue(newTask({ processAtMs: START_MS + 1_000 }));
  expect(hasRef()).toBe(false);
  const [first, second] = [await broker.subscribe({}), await broker.subscribe({})];
  expect(hasRef()).toBe(true);
  await first.close();
  await first.close();
  expect(hasRef()).toBe(true);
  await second.close();
  expect(hasRef()).toBe(false);
});

test('counts are by UTC day, and are kept for 90 days', async () => {
  const clock = new ManualClock({ wallMs: Date.parse('2026-02-27T23:59:59.999Z') });
  const broker = await EmbeddedBroker.open({ clock });
  const work = async (): Promise<void> => {
    await broker.enqueue(newTask());
    await broker.complete(await take(broker));
  };
  await work();
  await clock.advanceAsync(1);
  await work();
  await broker.enqueue(newTask());
  await broker.archive(await take(broker), failure());
  expect(await broker.history(QUEUE, 3)).toEqual([
    { queue: QUEUE, date: '2026-02-28', processed: 2, failed: 1 },
    { queue: QUEUE, date: '2026-02-27', processed: 1, failed: 0 },
    { queue: QUEUE, date: '2026-02-26', processed: 0, failed: 0 },
  ]);
  await clock.advanceAsync(89 * 86_400_000);
  await work();
  const history = await broker.history(QUEUE, 100);
  expect(history).toHaveLength(100);
  expect(history[89]).toMatchObject({ date: '2026-02-28', processed: 2 });
  expect(history[90]).toMatchObject({ date: '2026-02-27', processed: 0 });
  const counts = { processed: 1, failed: 0, processedTotal: 4, failedTotal: 1 };
  expect(await broker.queueStats(QUEUE)).toMatchObject(counts);
  checkBroker(broker);
});

test.each([
  [{ maxArchived: -1 }, RangeError],
  [{ maxArchived: 1.5 }, RangeError],
  [{ maxArchived: '1' }, TypeError],
  [{ archiveRetentionMs: -1 }, RangeError],
  [{ archiveRetentionMs: NaN }, RangeError],
  [{ clock: {} }, TypeError],
  [null, TypeError],
])('the options %o are rejected', async (options, type) => {
  await expect(EmbeddedBroker.open(options as never)).rejects.toBeInstanceOf(type);
});
