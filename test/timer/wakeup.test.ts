import { SystemTimer } from 'escapement';
import { checkTimer } from 'escapement/testing';
import { expect, test } from 'vitest';
import { CountingClock } from './support/counting-clock.ts';
import { addTask, TestTask } from './support/tasks.ts';
import { handTimer } from './support/timers.ts';

test('one wake-up is armed however many tasks are pending, on however many levels', () => {
  const clock = new CountingClock();
  const timer = new SystemTimer({ clock, wheelSize: 3 });
  const tasks = Array.from({ length: 300 }, (_, i) => new TestTask((i * 37) % 1_000));
  for (const task of tasks) {
    timer.add(task);
    expect(clock.pendingWakeups).toBe(1);
  }
  for (let i = 0; i < tasks.length; i += 3) tasks[i]?.cancel();
  while (timer.size > 0) {
    expect(clock.pendingWakeups).toBe(1);
    clock.advance(7);
    checkTimer(timer);
  }
  expect(clock.pendingWakeups).toBe(0);
  expect(clock.mostArmed).toBe(1);
});

test('no wake-up is armed for a timer without autoStart', async () => {
  const clock = new CountingClock();
  const timer = new SystemTimer({ clock, autoStart: false });
  const task = addTask(timer, 5);
  timer.schedule(0, () => undefined);
  clock.advance(100);
  expect([clock.mostArmed, task.runs]).toEqual([0, 0]);
  const waiting = new SystemTimer({ clock, autoStart: false });
  waiting.add(new TestTask(5));
  const wait = waiting.advanceClock(50);
  expect(clock.pendingWakeups).toBe(1);
  clock.advance(5);
  expect(await wait).toBe(true);
  expect([clock.pendingWakeups, clock.mostArmed]).toEqual([0, 1]);
});

test('cancelling the earliest task moves or disarms the wake-up', () => {
  const { clock, timer } = handTimer();
  const [first, second] = [new TestTask(10), new TestTask(40)];
  timer.add(first);
  timer.add(second);
  first.cancel();
  expect(clock.armedForMs).toBe(40);
  second.cancel();
  expect([clock.pendingWakeups, clock.mostArmed]).toEqual([0, 1]);
  checkTimer(timer);
});

test('rescheduling moves the wake-up to later and to earlier', () => {
  const { clock, timer } = handTimer();
  const id = timer.schedule(10, () => undefined);
  timer.schedule(40, () => undefined);
  timer.reschedule(id, 90);
  expect(clock.armedForMs).toBe(40);
  timer.reschedule(id, 20);
  expect(clock.armedForMs).toBe(20);
  timer.reschedule(id, 0);
  expect(clock.armedForMs).toBe(0);
  timer.reschedule(id, 30);
  expect(clock.armedForMs).toBe(30);
  expect(clock.mostArmed).toBe(1);
});

test('cancelling moves the wake-up after a late insertion has moved the tasks to a finer wheel', () => {
  const { clock, timer } = handTimer({ wheelSize: 4 });
  const id = timer.schedule(30, () => undefined);
  expect(clock.armedForMs).toBe(16);
  clock.nowMs = 17;
  timer.schedule(100, () => undefined);
  expect(clock.armedForMs).toBe(timer.nextExpirationMs());
  timer.cancel(id);
  expect(clock.armedForMs).toBe(timer.nextExpirationMs());
  checkTimer(timer);
});

test('cancelling moves the wake-up after a late insertion has made the tasks due', () => {
  const { clock, timer } = handTimer({ wheelSize: 4 });
  const ids = [timer.schedule(6, () => undefined)];
  clock.nowMs = 7;
  ids.push(timer.schedule(0, () => undefined));
  for (const id of ids) timer.cancel(id);
  expect([timer.size, clock.pendingWakeups]).toEqual([0, 0]);
  checkTimer(timer);
});

test('a late task that returns to the bucket that it left, a turn later, has a wake-up', () => {
  const { clock, timer } = handTimer({ wheelSize: 64 });
  const id = timer.schedule(10, () => undefined);
  clock.nowMs = 12;
  timer.reschedule(id, 62);
  expect(clock.armedForMs).toBe(74);
  checkTimer(timer);
});

test('a new timer arms nothing', () => {
  const clock = new CountingClock();
  const timer = new SystemTimer({ clock });
  clock.advance(1e9);
  expect([clock.mostArmed, clock.delivered, timer.poll()]).toEqual([0, 0, 0]);
});

test('ten thousand cancelled tasks arm nothing', () => {
  const clock = new CountingClock();
  const timer = new SystemTimer({ clock });
  const tasks = Array.from({ length: 10_000 }, (_, i) => new TestTask((i * 7_919) % 100_000));
  for (const task of tasks) timer.add(task);
  for (const task of tasks) task.cancel();
  expect([clock.pendingWakeups, timer.nextExpirationMs(), timer.size]).toEqual([0, undefined, 0]);
  clock.advance(1e6);
  expect(clock.delivered).toBe(0);
  checkTimer(timer);
});

test('one task with a delay of an hour costs at most one wake-up a level', () => {
  const clock = new CountingClock();
  const timer = new SystemTimer({ clock });
  addTask(timer, 3_600_000);
  const levels = timer.inspect().levels.length;
  clock.advance(3_599_000);
  expect(clock.delivered).toBeLessThan(levels);
  clock.advance(1_000);
  expect(clock.delivered).toBeLessThanOrEqual(levels);
  expect(timer.size).toBe(0);
});
