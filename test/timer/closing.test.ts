import { EscapementError, ManualClock, SystemTimer } from 'escapement';
import { checkTimer } from 'escapement/testing';
import { expect, test } from 'vitest';
import { thrownBy } from './support/errors.ts';
import { addTask, TestTask } from './support/tasks.ts';
import { handTimer, manualTimer } from './support/timers.ts';

test('close returns the pending tasks in order of expiration, and none of them runs', () => {
  const { clock, timer, journal } = handTimer({ wheelSize: 2 });
  const [c, a, d] = [100, 3, 5_000].map((delayMs) => journal.add(timer, delayMs));
  const gone = journal.add(timer, 50);
  timer.schedule(1, journal.write, 'callback');
  clock.nowMs = 4;
  const b = journal.add(timer, 0);
  gone.cancel();
  expect(timer.close()).toEqual([a, b, c, d]);
  expect([timer.size, clock.pendingWakeups, timer.nextExpirationMs()]).toEqual([0, 0, undefined]);
  clock.runTo(10_000);
  expect(journal.entries).toEqual([]);
  checkTimer(timer);
});

test('close is idempotent, and so is Symbol.dispose', () => {
  const { timer } = manualTimer();
  addTask(timer, 5);
  expect(timer.close()).toHaveLength(1);
  expect(timer.close()).toEqual([]);
  expect(timer.close({ pending: 'run' })).toEqual([]);
  timer[Symbol.dispose]();
  expect(timer.inspect().size).toBe(0);
});

test('Symbol.dispose drops pending tasks', () => {
  const clock = new ManualClock();
  const task = new TestTask(5);
  const timer = new SystemTimer({ clock });
  timer.add(task);
  timer[Symbol.dispose]();
  expect([task.pending, clock.pendingWakeups, timer.size]).toEqual([false, 0, 0]);
});

test("close with 'run' runs tasks and callbacks, each once, however long their delays", () => {
  const { clock, timer, journal } = handTimer({ wheelSize: 3, maxTasksPerTurn: 1 });
  const delays = [500, 20, 1, 1e12, 4];
  for (const delayMs of delays) timer.schedule(delayMs, journal.write, delayMs);
  const task = journal.add(timer, 20, 'task');
  clock.nowMs = 2;
  journal.add(timer, 0, 'due');
  expect(timer.close({ pending: 'run' })).toContain(task);
  expect(journal.entries).toEqual([1, 'due', 4, 20, 'task', 500, 1e12]);
  expect([task.runs, task.pending, timer.size, clock.pendingWakeups]).toEqual([1, false, 0, 0]);
  checkTimer(timer);
});

test('a task that close runs can cancel a later one, but neither move nor run it', () => {
  const { timer, journal } = handTimer();
  const returned: unknown[] = [];
  timer.schedule(1, () => {
    returned.push(timer.reschedule(id, 50), timer.rescheduleAt(id, 50), timer.poll());
    returned.push(cancelled.pending, cancelled.cancel());
  });
  const id = timer.schedule(2, journal.write, 'b');
  const cancelled = journal.add(timer, 3);
  timer.close({ pending: 'run' });
  expect(returned).toEqual([false, false, 0, true, true]);
  expect(journal.entries).toEqual(['b']);
});

test('a task that close runs cannot add tasks, so that close ends', () => {
  const errors: unknown[] = [];
  const { timer } = manualTimer({ onError: (error) => errors.push(error) });
  const task = addTask(timer, 1, (self) => timer.add(self));
  timer.close({ pending: 'run' });
  expect([task.runs, timer.size]).toEqual([1, 0]);
  expect(errors).toEqual([expect.objectContaining({ code: 'ERR_TIMER_CLOSED', op: 'SystemTimer.add' })]);
});

test.each(['drop', 'run'] as const)(
  'close with %j rejects sleeps in a bucket, those that are due, and those with a signal',
  async (pending) => {
    const { clock, timer } = handTimer();
    const { signal } = new AbortController();
    const sleeps = [timer.sleep(5), timer.sleep(0), timer.sleep(1e9, 'x', { signal })];
    clock.nowMs = 10;
    expect(timer.close({ pending })).toEqual([]);
    expect(timer.size).toBe(0);
    for (const sleep of sleeps) {
      await expect(sleep).rejects.toBeInstanceOf(EscapementError);
      await expect(sleep).rejects.toHaveProperty('code', 'ERR_TIMER_CLOSED');
    }
  },
);

test.each([true, false])(
  'a pending advanceClock resolves false at close, with autoStart %j',
  async (autoStart) => {
    const { clock, timer } = manualTimer({ autoStart });
    addTask(timer, 500);
    const waits = [timer.advanceClock(1_000), timer.advanceClock(Infinity)];
    timer.close();
    expect(await Promise.all(waits)).toEqual([false, false]);
    expect(clock.pendingWakeups).toBe(0);
    clock.advance(1_000);
    expect(timer.poll()).toBe(0);
    expect(await timer.advanceClock(0)).toBe(false);
    expect(await timer.advanceClock(1_000)).toBe(false);
  },
);

test('isCancelled is true only after a cancel that took effect', () => {
  const { clock, timer } = manualTimer();
  const task = new TestTask(5);
  expect([task.isCancelled, task.cancel(), task.isCancelled]).toEqual([false, false, false]);
  timer.add(task);
  expect(task.isCancelled).toBe(false);
  expect([task.cancel(), task.isCancelled]).toEqual([true, true]);
  timer.add(task);
  expect([task.isCancelled, task.pending]).toEqual([false, true]);
  clock.advance(5);
  expect([task.isCancelled, task.cancel(), task.isCancelled]).toEqual([false, false, false]);
  timer.add(task);
  timer.close();
  expect([task.isCancelled, task.pending]).toEqual([false, false]);
});

test('isCancelled stays true when a later add is refused', () => {
  const { timer } = manualTimer();
  const task = addTask(timer, 5);
  task.cancel();
  timer.close();
  thrownBy(() => timer.add(task));
  expect(task.isCancelled).toBe(true);
});

test('a call after close fails with an EscapementError with code and op, and changes nothing', async () => {
  const { timer } = manualTimer({ name: 'requests' });
  const task = new TestTask(5);
  timer.close();
  const errors = {
    add: thrownBy(() => timer.add(task)),
    schedule: thrownBy(() => timer.schedule(5, () => undefined)),
    sleep: await timer.sleep(5).catch((error: unknown) => error),
  };
  for (const [method, error] of Object.entries(errors)) {
    expect(error).toBeInstanceOf(EscapementError);
    const message = "timer 'requests' is closed";
    expect(error).toMatchObject({ code: 'ERR_TIMER_CLOSED', op: `SystemTimer.${method}`, message });
  }
  expect([task.pending, timer.size]).toEqual([false, 0]);
});

test('the state of a closed timer can still be read', () => {
  const { timer } = manualTimer();
  timer.close();
  timer.ref();
  timer.unref();
  expect(timer.hasRef()).toBe(false);
  expect(timer.nextExpirationMs()).toBeUndefined();
  expect(timer.inspect()).toMatchObject({ size: 0, dueNow: 0, delayQueue: [] });
  checkTimer(timer);
});
