import { ManualClock, SystemTimer } from 'escapement';
import { checkTimer } from 'escapement/testing';
import { expect, test } from 'vitest';
import { thrownBy } from './support/errors.ts';
import { TestTask } from './support/tasks.ts';
import { handTimer, manualTimer } from './support/timers.ts';

test('scheduleAt calls back at the deadline, and not before', () => {
  const { clock, timer } = manualTimer({ nowMs: 1_000 });
  const calls: string[] = [];
  timer.scheduleAt(1_005.5, (name: string) => calls.push(name), 'a');
  clock.advance(5.5);
  expect(calls).toEqual([]);
  clock.advance(0.5);
  expect(calls).toEqual(['a']);
  expect(timer.size).toBe(0);
});

test('a deadline in the past runs in the next turn, never inside the call', () => {
  const { clock, timer } = manualTimer({ nowMs: 1_000 });
  const calls: number[] = [];
  for (const deadlineMs of [1_000, 999, 0, -5, -Number.MAX_VALUE]) {
    timer.scheduleAt(deadlineMs, (it: number) => calls.push(it), deadlineMs);
  }
  expect(calls).toEqual([]);
  expect(timer.size).toBe(5);
  clock.advance(0);
  expect(calls).toEqual([1_000, 999, 0, -5, -Number.MAX_VALUE]);
});

test('a deadline in the current tick, past or not, is due at the end of the tick, because the clock is not read for it', () => {
  const { clock, timer } = handTimer({ nowMs: 95, tickMs: 10 });
  timer.scheduleAt(97, () => undefined); // arms the wake-up
  clock.readings = 0;
  const calls: number[] = [];
  for (const deadlineMs of [91, 95]) timer.scheduleAt(deadlineMs, (it: number) => calls.push(it), deadlineMs);
  expect(clock.readings).toBe(0);
  clock.runTo(99);
  expect(calls).toEqual([]);
  clock.runTo(100);
  expect(calls).toEqual([91, 95]);
});

test('rescheduleAt moves a deadline in place, and returns false for an id that is not pending', () => {
  const { clock, timer } = manualTimer({ nowMs: 100 });
  const calls: number[] = [];
  const id = timer.scheduleAt(110, () => void calls.push(clock.now()));
  expect(timer.rescheduleAt(id, 500)).toBe(true);
  clock.advance(20);
  expect(timer.rescheduleAt(id, 130)).toBe(true);
  expect(calls).toEqual([]);
  clock.advance(300);
  expect(calls).toEqual([130]);
  expect(timer.rescheduleAt(id, 900)).toBe(false);
  timer.close();
  expect(timer.rescheduleAt(id, 200)).toBe(false);
});

test('a task is added at a deadline instead of its delay, and moved to another one', () => {
  const { clock, timer } = manualTimer({ nowMs: 100 });
  const task = new TestTask(5);
  timer.add(task, 150);
  clock.advance(49);
  expect([task.pending, task.runs]).toEqual([true, 0]);
  timer.add(task, 170);
  expect(timer.size).toBe(1);
  clock.advance(20);
  expect(task.runs).toBe(0);
  clock.advance(1);
  expect([task.pending, task.runs]).toEqual([false, 1]);
});

test.each([NaN, Infinity, -Infinity])('the deadline %d is out of range and changes nothing', (deadlineMs) => {
  const { timer } = manualTimer();
  const id = timer.scheduleAt(10, () => undefined);
  const outOfRange: unknown = expect.objectContaining({
    name: 'RangeError',
    code: 'ERR_OUT_OF_RANGE',
    message: expect.stringContaining(
      `deadlineMs must be a finite number of milliseconds. Received ${deadlineMs}`,
    ) as string,
  });
  expect(() => timer.scheduleAt(deadlineMs, () => undefined)).toThrow(outOfRange);
  expect(() => timer.rescheduleAt(id, deadlineMs)).toThrow(outOfRange);
  expect(() => timer.add(new TestTask(1), deadlineMs)).toThrow(outOfRange);
  expect([timer.size, timer.nextExpirationMs()]).toEqual([1, 10]);
});

test('a deadline behind the armed one reads no clock', () => {
  const { clock, timer } = handTimer({ nowMs: 1_000 });
  const first = timer.scheduleAt(1_010, () => undefined);
  clock.readings = 0;
  const ids = Array.from({ length: 1_000 }, (_, i) => timer.scheduleAt(1_011 + i, () => undefined));
  for (const id of ids) timer.rescheduleAt(id, 5_000);
  for (const id of ids) timer.cancel(id);
  timer.add(new TestTask(1), 2_000);
  expect(clock.readings).toBe(0);
  timer.scheduleAt(1_005, () => undefined);
  expect(clock.readings).toBe(1);
  timer.rescheduleAt(first, 1_002);
  expect(clock.readings).toBe(2);
  checkTimer(timer);
});

test('the first deadline of an idle timer reads the clock once', () => {
  const { clock, timer } = handTimer({ nowMs: 1_000 });
  clock.readings = 0;
  timer.scheduleAt(1_010, () => undefined);
  expect(clock.readings).toBe(1);
});

test('a timer that is pumped by hand, and a task that is running, add deadlines without reading the clock', () => {
  const manual = handTimer({ nowMs: 1_000, autoStart: false });
  manual.clock.readings = 0;
  manual.timer.scheduleAt(1_010, () => undefined);
  expect(manual.clock.readings).toBe(0);
  const { clock, timer } = handTimer({ nowMs: 1_000 });
  let readings = NaN;
  timer.schedule(5, () => {
    const before = clock.readings;
    timer.scheduleAt(1_500, () => undefined);
    readings = clock.readings - before;
  });
  clock.runTo(1_005);
  expect(readings).toBe(0);
  expect(clock.pendingWakeups).toBe(1);
});

test('a clock that is invalid when a deadline arms the wake-up is an error, and nothing is added', () => {
  let nowMs = 0;
  const timer = new SystemTimer({ clock: Object.assign(new ManualClock(), { now: () => nowMs }) });
  nowMs = NaN;
  expect(() => timer.scheduleAt(10, () => undefined)).toThrow(
    expect.objectContaining({ code: 'ERR_CLOCK_INVALID' }),
  );
  expect(timer.size).toBe(0);
  checkTimer(timer);
});

test('scheduleAt refuses what is not a function, and a closed timer refuses scheduleAt', () => {
  const { timer } = manualTimer();
  expect(thrownBy(() => timer.scheduleAt(5, 'now' as never))).toHaveProperty('code', 'ERR_INVALID_ARG_TYPE');
  timer.close();
  expect(thrownBy(() => timer.scheduleAt(5, () => undefined))).toHaveProperty('code', 'ERR_TIMER_CLOSED');
});
