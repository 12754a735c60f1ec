import { expect, test } from 'vitest';
import { addTask } from './support/tasks.ts';
import { handTimer } from './support/timers.ts';

test('a later task does not move the wake-up', () => {
  const { clock, timer } = handTimer();
  addTask(timer, 3);
  const id = timer.schedule(5, () => undefined);
  addTask(timer, 7);
  timer.reschedule(id, 6);
  timer.cancel(id);
  expect(clock.delaysMs).toEqual([3]);
});

test('schedule and reschedule read the clock once', () => {
  const { clock, timer } = handTimer();
  clock.readings = 0;
  const id = timer.schedule(5, () => undefined);
  expect(clock.readings).toBe(1);
  timer.reschedule(id, 3);
  expect(clock.readings).toBe(2);
});

test('while tasks run no wake-up is armed, and one at the end of their turn', () => {
  const { clock, timer, journal } = handTimer();
  timer.schedule(0, () => {
    for (const delayMs of [5, 4, 3]) addTask(timer, delayMs);
    journal.write(clock.pendingWakeups);
  });
  clock.fire();
  expect([journal.entries, clock.delaysMs]).toEqual([[0], [0, 3]]);
});

test('a timer keeps the process alive by default', () => {
  const { clock, timer } = handTimer();
  expect(timer.hasRef()).toBe(true);
  addTask(timer, 5);
  expect(clock.refs).toEqual([]);
});

test('ref and unref apply to the armed wake-up, and to every later one', () => {
  const { clock, timer } = handTimer();
  addTask(timer, 50);
  timer.unref();
  expect([timer.hasRef(), clock.refs]).toEqual([false, ['unref']]);
  addTask(timer, 5);
  expect(clock.refs).toEqual(['unref', 'unref']);
  timer.ref();
  expect([timer.hasRef(), clock.refs]).toEqual([true, ['unref', 'unref', 'ref']]);
  addTask(timer, 1);
  expect(clock.refs).toHaveLength(3);
});

test('unref applies to a wake-up that is armed again because it fired early', () => {
  const { clock, timer } = handTimer();
  timer.unref();
  addTask(timer, 50);
  clock.fire();
  expect(clock.refs).toEqual(['unref', 'unref']);
});

test('a caller that waits again when its wait resolves has a new deadline', async () => {
  const { clock, timer } = handTimer({ autoStart: false });
  const again = timer.advanceClock(10).then(() => timer.advanceClock(20));
  clock.runTo(10);
  await new Promise((resolve) => setImmediate(resolve));
  expect(clock.armedForMs).toBe(30);
  timer.close();
  expect(await again).toBe(false);
});
