import { EscapementError } from 'escapement';
import { checkTimer } from 'escapement/testing';
import { getEventListeners } from 'node:events';
import { describe, expect, test } from 'vitest';
import { expectInvalid, RANGE, TYPE } from '../core/refused.ts';
import { thrownBy } from './support/errors.ts';
import { addTask, Journal, TestTask } from './support/tasks.ts';
import { handTimer, manualTimer } from './support/timers.ts';

/** Whether a promise has settled, once all promise jobs are done. */
function isSettled(promise: Promise<unknown>): Promise<boolean> {
  const nextTurn = new Promise<boolean>((resolve) => setImmediate(resolve, false));
  return Promise.race([promise.then(() => true), nextTurn]);
}

describe.each([true, false])('advanceClock, with autoStart %j', (autoStart) => {
  test('advanceClock waits at most timeoutMs for a bucket to fall due, and resolves false if none did', async () => {
    const { clock, timer } = manualTimer({ autoStart });
    addTask(timer, 31);
    const wait = timer.advanceClock(30);
    clock.advance(29.5);
    expect(await isSettled(wait)).toBe(false);
    clock.advance(0.5);
    expect(await wait).toBe(false);
    expect(clock.pendingWakeups).toBe(autoStart ? 1 : 0);
  });

  test('advanceClock resolves true when a bucket falls due, and its tasks have run by then', async () => {
    const { clock, timer, journal } = manualTimer({ autoStart });
    for (const delayMs of [40, 20, 20]) journal.add(timer, delayMs);
    const wait = timer.advanceClock(100).then((fellDue) => [fellDue, clock.now(), [...journal.entries]]);
    await clock.advanceAsync(100);
    expect(await wait).toEqual([true, 20, [20, 20]]);
  });

  test('advanceClock resolves true for a coarse bucket that only moves its tasks to a finer wheel', async () => {
    const { clock, timer } = manualTimer({ autoStart, wheelSize: 4 });
    const task = addTask(timer, 6);
    const wait = timer.advanceClock(100);
    clock.advance(4);
    expect(await wait).toBe(true);
    expect(task.runs).toBe(0);
  });

  test('advanceClock settles every pending call, each at its own timeout', async () => {
    const { clock, timer } = manualTimer({ autoStart });
    addTask(timer, 50);
    const waits = [10, 1_000, 50, 20, Infinity].map((timeoutMs) => timer.advanceClock(timeoutMs));
    expect(clock.pendingWakeups).toBe(1);
    clock.advance(10);
    expect(await waits[0]).toBe(false);
    expect(await Promise.all(waits.slice(1).map(isSettled))).toEqual([false, false, false, false]);
    clock.advance(40);
    expect(await Promise.all(waits)).toEqual([false, true, true, false, true]);
    expect(clock.pendingWakeups).toBe(0);
    checkTimer(timer);
  });

  test('advanceClock with 0 or less does not wait', async () => {
    const { clock, timer } = manualTimer({ autoStart });
    addTask(timer, 5);
    for (const timeoutMs of [0, -1, -Infinity]) expect(await timer.advanceClock(timeoutMs)).toBe(false);
    expect(clock.pendingWakeups).toBe(autoStart ? 1 : 0);
  });

  test('a bucket that was emptied by cancellation does not count for advanceClock', async () => {
    const { clock, timer } = manualTimer({ autoStart });
    const task = addTask(timer, 5);
    const wait = timer.advanceClock(100);
    task.cancel();
    clock.advance(99);
    expect(await isSettled(wait)).toBe(false);
    clock.advance(1);
    expect(await wait).toBe(false);
  });

  test('an earlier task that is added meanwhile ends a pending advanceClock', async () => {
    const { clock, timer } = manualTimer({ autoStart });
    addTask(timer, 90);
    const wait = timer.advanceClock(100);
    addTask(timer, 3);
    clock.advance(3);
    expect(await wait).toBe(true);
  });

  test('a poll ends a pending advanceClock', async () => {
    const { clock, timer } = handTimer({ autoStart });
    addTask(timer, 5);
    const wait = timer.advanceClock(100);
    clock.nowMs = 5;
    expect(timer.poll()).toBe(1);
    expect(await wait).toBe(true);
    expect(clock.pendingWakeups).toBe(0);
  });

  test('advanceClock inside a task waits for the next bucket, not for the one that runs', async () => {
    const { clock, timer } = handTimer({ autoStart });
    const waits: Promise<boolean>[] = [];
    const journal = new Journal();
    journal.add(timer, 5, 'a', () => waits.push(timer.advanceClock(100), timer.advanceClock(10)));
    journal.add(timer, 5, 'b');
    journal.add(timer, 50, 'c');
    clock.nowMs = 5;
    expect(timer.poll()).toBe(2);
    expect(await Promise.all(waits.map(isSettled))).toEqual([false, false]);
    clock.runTo(15);
    expect(await waits[1]).toBe(false);
    clock.runTo(50);
    expect(await waits[0]).toBe(true);
    expect(journal.entries).toEqual(['a', 'b', 'c']);
  });

  test('advanceClock resolves true for a bucket that fell due although the wake-up comes after its timeout', async () => {
    const { clock, timer } = handTimer({ autoStart });
    const task = addTask(timer, 50);
    const wait = timer.advanceClock(50);
    clock.runTo(500);
    expect(await wait).toBe(true);
    expect(task.runs).toBe(1);
  });
});

test('a loop over advanceClock runs everything, in order, and sleeps in between', async () => {
  const { clock, timer, journal } = handTimer({ autoStart: false });
  const delays = [700, 3, 64, 5_000, 65, 0];
  for (const delayMs of delays) journal.add(timer, delayMs);
  while (timer.size > 0) {
    const wait = timer.advanceClock(200);
    if (clock.armedForMs !== undefined) clock.runTo(clock.armedForMs);
    await wait;
  }
  expect(journal.entries).toEqual([0, 3, 64, 65, 700, 5_000]);
  expect(clock.mostArmed).toBe(1);
  expect(clock.now()).toBe(5_000);
});

test('advanceClock is not bounded by maxTasksPerTurn', async () => {
  const { clock, timer } = manualTimer({ autoStart: false, maxTasksPerTurn: 1 });
  const tasks = [1, 1, 1].map((delayMs) => new TestTask(delayMs));
  for (const task of tasks) timer.add(task);
  const wait = timer.advanceClock(10);
  clock.advance(1);
  expect(await wait).toBe(true);
  expect(tasks.map((task) => task.runs)).toEqual([1, 1, 1]);
});

test.each([
  [NaN, RANGE, 'NaN'],
  ['5', TYPE, "'5' (a string)"],
  [undefined, TYPE, 'undefined'],
  [null, TYPE, 'null'],
  [5n, TYPE, '5n (a bigint)'],
])('advanceClock rejects for a timeoutMs of %s', async (timeoutMs, kind, shown) => {
  const { clock, timer } = manualTimer({ autoStart: false });
  addTask(timer, 0);
  const error: unknown = await timer.advanceClock(timeoutMs as number).catch((reason: unknown) => reason);
  expectInvalid(error, 'timeoutMs', kind, shown);
  expect([timer.size, clock.pendingWakeups]).toEqual([1, 0]);
});

test('the error for a timeoutMs of advanceClock names Infinity, which is allowed', async () => {
  const message = 'timeoutMs must be a number of milliseconds or Infinity. Received NaN';
  await expect(manualTimer().timer.advanceClock(NaN)).rejects.toThrow(message);
});

test('advanceClock with an invalid argument does not throw synchronously', () => {
  const { timer } = manualTimer();
  expect(() => thrownBy(() => void timer.advanceClock(NaN).catch(() => undefined))).toThrow('expected it');
});

test('a sleep resolves with its value after its delay, and not before', async () => {
  const { clock, timer } = manualTimer();
  const woken: unknown[] = [];
  const note = (value: unknown): unknown => woken.push(value);
  const value = { any: 'thing' };
  const sleeps = [timer.sleep(10, value).then(note), timer.sleep(5).then(note), timer.sleep(0, 0).then(note)];
  await clock.advanceAsync(4);
  expect(woken).toEqual([0]);
  await clock.advanceAsync(6);
  await Promise.all(sleeps);
  expect(woken).toEqual([0, undefined, value]);
  expect(woken[2]).toBe(value);
});

test('a sleep waits for a value that is a promise', async () => {
  const { clock, timer } = manualTimer();
  const sleep = timer.sleep(1, Promise.resolve('inner'));
  clock.advance(1);
  expect(await sleep).toBe('inner');
});

test("an aborted sleep rejects with the signal's own reason, at once", async () => {
  const { timer } = manualTimer();
  const controller = new AbortController();
  const sleep = timer.sleep(10, undefined, { signal: controller.signal });
  const reason = { not: 'even an error' };
  controller.abort(reason);
  expect(timer.size).toBe(0);
  checkTimer(timer);
  expect(await sleep.catch((error: unknown) => error)).toBe(reason);
});

test('a sleep with a signal that is aborted already never starts', async () => {
  const { timer } = manualTimer();
  const reason = new Error('long ago');
  const signal = AbortSignal.abort(reason);
  const sleep = timer.sleep(10, undefined, { signal });
  expect(timer.size).toBe(0);
  expect(await sleep.catch((error: unknown) => error)).toBe(reason);
  expect(getEventListeners(signal, 'abort')).toHaveLength(0);
});

test('an abort rejects a sleep that is due and has not run yet', async () => {
  const { clock, timer } = manualTimer({ autoStart: false });
  const controller = new AbortController();
  const sleep = timer.sleep(5, 'slept', { signal: controller.signal });
  clock.advance(10);
  controller.abort('too late');
  expect(timer.poll()).toBe(0);
  expect(await sleep.catch((error: unknown) => error)).toBe('too late');
});

test('one abort ends all sleeps that share the signal, and no others', async () => {
  const { clock, timer } = manualTimer();
  const controller = new AbortController();
  const { signal } = controller;
  const aborted = [1, 2, 3].map((delayMs) => timer.sleep(delayMs, undefined, { signal }));
  const other = timer.sleep(2, 'other');
  controller.abort('stop');
  expect(timer.size).toBe(1);
  clock.advance(5);
  expect(await other).toBe('other');
  for (const sleep of aborted) await expect(sleep).rejects.toBe('stop');
});

test.each(['slept', 'aborted', 'closed'])('a sleep removes its listener when it %s', async (end) => {
  const { clock, timer } = manualTimer();
  const controller = new AbortController();
  const { signal } = controller;
  const sleeps = [5, 0, 1e9].map((delayMs) => timer.sleep(delayMs, undefined, { signal }));
  expect(getEventListeners(signal, 'abort')).toHaveLength(3);
  if (end === 'slept') clock.advance(2e9);
  if (end === 'aborted') controller.abort();
  if (end === 'closed') timer.close();
  await Promise.allSettled(sleeps);
  expect(getEventListeners(signal, 'abort')).toHaveLength(0);
  expect(timer.size).toBe(0);
});

test('an abort listener may close the timer', async () => {
  const { timer } = manualTimer();
  const controller = new AbortController();
  controller.signal.addEventListener('abort', () => timer.close());
  const sleeps = [1, 2].map((delayMs) => timer.sleep(delayMs, undefined, { signal: controller.signal }));
  controller.abort('stop');
  for (const sleep of sleeps) await expect(sleep).rejects.toBeInstanceOf(EscapementError);
  expect(timer.size).toBe(0);
  checkTimer(timer);
});
