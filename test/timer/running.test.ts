import { ManualClock, SystemTimer, TimerTask } from 'escapement';
import { checkTimer } from 'escapement/testing';
import { expect, test, vi } from 'vitest';
import { throwing } from './support/errors.ts';
import { addTask, Journal } from './support/tasks.ts';
import { handTimer, manualTimer } from './support/timers.ts';

test('a callback that is scheduled without an argument is called with undefined', () => {
  const { clock, timer } = manualTimer();
  const calls: unknown[][] = [];
  timer.schedule(5, (...args: unknown[]) => calls.push(args));
  clock.advance(5);
  expect(calls).toEqual([[undefined]]);
});

test.each([0, -0, -1, -1e9, 1])('add and schedule do not run user code with a delay of %d', (delayMs) => {
  const { timer, journal } = manualTimer({ nowMs: 100 });
  journal.add(timer, delayMs);
  timer.schedule(delayMs, journal.write, 'callback');
  expect(journal.entries).toEqual([]);
  expect(timer.size).toBe(2);
});

test('add does not run a task that rounding down makes due at once, where Kafka runs it', () => {
  const { timer, journal } = manualTimer({ nowMs: 1_000, tickMs: 10, rounding: 'down' });
  journal.add(timer, 9);
  expect(journal.entries).toEqual([]);
  expect(timer.inspect().dueNow).toBe(1);
  expect(timer.poll()).toBe(1);
});

test('add of a task that is due at once moves a wake-up that is armed for later', () => {
  const { clock, timer, journal } = manualTimer();
  journal.add(timer, 60_000);
  timer.schedule(0, journal.write, 'now');
  clock.advance(0);
  expect(journal.entries).toEqual(['now']);
});

const starts = [0, 0.1, 0.5, 17, 1_000.25, 123_456_789.987];
const delays = [0.001, 0.1, 0.3, 0.7, 1, 1.5, 9, 10, 11.999, 63, 64, 65, 4_095.5, 4_096, 100_000.1];

test.each([1, 3, 7, 10, 1_000])(
  'a task does not run before now() >= added at + delayMs, with a tick of %d',
  (tickMs) => {
    for (const nowMs of starts) {
      const { clock, timer } = manualTimer({ nowMs, tickMs, wheelSize: 5 });
      for (const delayMs of delays) {
        const dueMs = clock.now() + delayMs;
        timer.schedule(delayMs, () => {
          expect(clock.now()).toBeGreaterThanOrEqual(dueMs);
          expect(clock.now()).toBeLessThan(dueMs + tickMs);
        });
      }
      clock.advance(200_000);
      expect(timer.size).toBe(0);
    }
    expect.assertions(starts.length * (2 * delays.length + 1));
  },
);

test('with rounding down a task runs at most a tick early', () => {
  const { clock, timer } = manualTimer({ nowMs: 1_003, tickMs: 10, wheelSize: 4, rounding: 'down' });
  for (const delayMs of [1, 9, 10, 55, 397, 12_345]) {
    const dueMs = 1_003 + delayMs;
    timer.schedule(delayMs, () => {
      expect(clock.now()).toBeGreaterThan(dueMs - 10);
      expect(clock.now()).toBeLessThanOrEqual(dueMs);
    });
  }
  clock.advance(20_000);
  expect.assertions(12);
});

test('a cancelled task does not run, whether it was in a bucket, in the due queue, or on a coarse wheel', () => {
  const { clock, timer, journal } = handTimer({ wheelSize: 2 });
  const waiting = [1, 5, 1_000].map((delayMs) => journal.add(timer, delayMs));
  const ids = [1, 5, 1_000].map((delayMs) => timer.schedule(delayMs, journal.write, delayMs));
  waiting.push(journal.add(timer, 0));
  clock.nowMs = 3;
  ids.push(timer.schedule(0, journal.write, 'due'));
  expect(waiting.map((task) => task.cancel())).toEqual([true, true, true, true]);
  expect(ids.map((id) => timer.cancel(id))).toEqual([true, true, true, true]);
  expect(waiting.map((task) => task.cancel())).toEqual([false, false, false, false]);
  expect(ids.map((id) => timer.cancel(id))).toEqual([false, false, false, false]);
  clock.runTo(5_000);
  expect(timer.poll()).toBe(0);
  expect(journal.entries).toEqual([]);
});

test('a late wake-up runs all that is due in one turn, in order of expiration, however it was added', () => {
  const { clock, timer, journal } = handTimer({ wheelSize: 3 });
  const delays = Array.from({ length: 500 }, (_, i) => ((i * 7_919) % 1_009) + 1);
  for (const delayMs of delays) timer.schedule(delayMs, journal.write, delayMs);
  clock.nowMs = 2_000;
  clock.fire();
  expect(journal.entries).toEqual(delays.sort((a, b) => a - b));
  expect(clock.pendingWakeups).toBe(0);
  checkTimer(timer);
});

test('onError receives the error of a task with the task, and that of a callback without one', () => {
  const onError = vi.fn();
  const { clock, timer, journal } = manualTimer({ onError });
  const boom = new Error('boom');
  const fail = throwing(boom);
  journal.add(timer, 5, 'a');
  const task = journal.add(timer, 5, 'b', (self) => {
    journal.write(self.pending || self.isCancelled);
    fail();
  });
  timer.schedule(5, fail, 'argument');
  journal.add(timer, 5, 'c');
  journal.add(timer, 6, 'd');
  clock.advance(10);
  expect(journal.entries).toEqual(['a', 'b', false, 'c', 'd']);
  expect(onError.mock.calls).toEqual([
    [boom, task],
    [boom, undefined],
  ]);
  expect(timer.size).toBe(0);
  checkTimer(timer);
});

test.each([undefined, null, 0, 'text'])('onError receives a thrown %j', (thrown) => {
  const onError = vi.fn();
  const { timer } = manualTimer({ onError });
  const task = addTask(timer, 0, throwing(thrown));
  addTask(timer, 0);
  expect(timer.poll()).toBe(2);
  expect(onError.mock.calls).toEqual([[thrown, task]]);
});

test('a task whose overridden run throws can be added again', () => {
  class Flaky extends TimerTask {
    runs = 0;
    override run(): void {
      if (++this.runs === 1) throw new Error('first time');
    }
  }
  const onError = vi.fn();
  const { clock, timer } = manualTimer({ onError });
  const task = new Flaky(1);
  timer.add(task);
  clock.advance(1);
  expect([task.pending, task.isCancelled]).toEqual([false, false]);
  timer.add(task);
  clock.advance(1);
  expect(task.runs).toBe(2);
  expect(onError).toHaveBeenCalledTimes(1);
});

test('onError may use the timer', () => {
  const clock = new ManualClock();
  const journal = new Journal();
  const timer: SystemTimer = new SystemTimer({
    clock,
    onError: () => {
      expect(timer.poll()).toBe(0);
      timer.schedule(0, journal.write, 'from the handler');
    },
  });
  journal.add(timer, 1, 'a', throwing(new Error('boom')));
  journal.add(timer, 1, 'b');
  clock.advance(1);
  expect(journal.entries).toEqual(['a', 'b', 'from the handler']);
});
