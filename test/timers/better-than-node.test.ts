import * as ours from 'escapement/timers';
import { setInterval as intervals } from 'escapement/timers/promises';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { runProgram } from '../run-program.ts';

const DAY_MS = 86_400_000;

describe('under fake timers', () => {
  beforeEach(() => vi.useFakeTimers());
  afterEach(() => vi.useRealTimers());

  test.each([2 ** 31, 40 * DAY_MS, 400 * DAY_MS])('a delay of %d ms is honoured', (delayMs) => {
    let calls = 0;
    ours.setTimeout(() => calls++, delayMs);
    vi.advanceTimersByTime(delayMs - 1);
    expect(calls).toBe(0);
    vi.advanceTimersByTime(1);
    expect(calls).toBe(1);
  });

  test('a delay of Infinity never ends, and can be cleared', () => {
    const timeout = ours.setTimeout(() => undefined, Infinity);
    vi.advanceTimersByTime(10_000 * DAY_MS);
    expect(timeout.hasRef()).toBe(true);
    ours.clearTimeout(timeout);
    expect(vi.getTimerCount()).toBe(0);
  });

  test('an interval does not drift: its thousandth call is due after a thousand periods', () => {
    const calls: number[] = [];
    const startMs = performance.now();
    const interval = ours.setInterval(() => {
      calls.push(performance.now() - startMs);
      // The callback takes a while, and now and then it is called late.
      vi.setSystemTime(Date.now() + 3);
    }, 10);
    vi.advanceTimersByTime(10_000);
    ours.clearInterval(interval);
    expect(calls).toHaveLength(1_000);
    expect(calls.at(-1)).toBe(10_000);
  });

  test('an async iterator does not burst: a busy loop gets one tick for those that it missed', async () => {
    const iterator = intervals(10, 'tick')[Symbol.asyncIterator]();
    const first = iterator.next();
    await vi.advanceTimersByTimeAsync(10);
    await first;
    await vi.advanceTimersByTimeAsync(95);
    expect(await iterator.next()).toEqual({ value: 'tick', done: false });
    let isThere = false;
    const second = iterator.next().then(() => (isThere = true));
    await vi.advanceTimersByTimeAsync(4);
    expect(isThere).toBe(false);
    await vi.advanceTimersByTimeAsync(1);
    expect(await second).toBe(true);
    await iterator.return(undefined);
    expect(vi.getTimerCount()).toBe(0);
  });

  test('the host has one timeout, however many are pending', () => {
    const timeouts = Array.from({ length: 1_000 }, (_, i) => ours.setTimeout(() => undefined, 100 + i));
    expect(vi.getTimerCount()).toBe(1);
    for (const timeout of timeouts) ours.clearTimeout(timeout);
    expect(vi.getTimerCount()).toBe(0);
  });
});

test('a timeout is never early on its clock, in real time', async () => {
  const early: number[] = [];
  await Promise.all(
    Array.from({ length: 300 }, (_, i) => {
      const delayMs = 1 + (i % 40);
      const startMs = performance.now();
      return new Promise<void>((resolve) => {
        ours.setTimeout(() => {
          const elapsedMs = performance.now() - startMs;
          if (elapsedMs < delayMs) early.push(elapsedMs - delayMs);
          resolve();
        }, delayMs);
      });
    }),
  );
  expect(early).toEqual([]);
});

test('an interval leaves out calls that it missed in a stall, and keeps its period', async () => {
  const startMs = performance.now();
  const calls: number[] = [];
  await new Promise<void>((resolve) => {
    const interval = ours.setInterval(() => {
      calls.push(performance.now() - startMs);
      const [first = 0] = calls;
      if (calls.length === 1) while (performance.now() - startMs < first + 125) continue;
      if (calls.length < 4) return;
      ours.clearInterval(interval);
      resolve();
    }, 50);
  });
  // The beats of 50, 200, 250, 300, unless the machine is slow: those of 100 and 150 fell into the stall.
  const beats = calls.map((call) => Math.floor(call / 50));
  const [first = 0, second] = beats;
  expect(first).toBeGreaterThanOrEqual(1);
  expect(second).toBeGreaterThanOrEqual(first + 3);
  expect(new Set(beats).size).toBe(4);
});

test('the clear functions accept timeouts of the host', async () => {
  let calls = 0;
  ours.clearTimeout(setTimeout(() => calls++, 1));
  ours.clearInterval(+setInterval(() => calls++, 1));
  await new Promise((resolve) => setTimeout(resolve, 8));
  expect(calls).toBe(0);
});

test('a program may make the functions global', () => {
  const { stdout, stderr, status } = runProgram(`
    import * as timers from 'escapement/timers';
    Object.assign(globalThis, timers);
    clearTimeout(setTimeout(() => console.log('never'), 5));
    const interval = setInterval(() => {
      console.log('first');
      clearInterval(interval);
      setTimeout(() => console.log('second'), 20);
    }, 5);
  `);
  expect([stdout.trim().split('\n'), stderr, status]).toEqual([['first', 'second'], '', 0]);
});

test('a program may wrap functions of ours that it has made global', () => {
  const { lines, stderr, status } = runProgram(`
    import { SystemTimer } from 'escapement';
    import * as timers from 'escapement/timers';
    const hostTimeout = setTimeout(() => console.log('never'), 10);
    Object.assign(globalThis, timers);
    const { setTimeout: wrapped, clearTimeout: wrappedClear } = globalThis;
    globalThis.setTimeout = (...args) => wrapped(...args);
    globalThis.clearTimeout = (...args) => wrappedClear(...args);
    clearTimeout(hostTimeout);
    clearTimeout(setTimeout(() => console.log('never'), 10));
    setTimeout(() => console.log('timeout'), 20);
    const timer = new SystemTimer();
    timer.cancel(timer.schedule(5, () => console.log('never')));
    timer.schedule(40, () => console.log('timer'));
  `);
  expect([lines, stderr, status]).toEqual([['timeout', 'timer'], '', 0]);
});

test('timeouts keep their time and their turns while a program wraps the global setTimeout', () => {
  const { lines, stderr, status } = runProgram(`
    import * as timers from 'escapement/timers';
    const host = globalThis.setTimeout;
    globalThis.setTimeout = (...args) => host(...args);
    const end = () => { clearInterval(requests); clearTimeout(guard); };
    for (const name of ['a', 'b']) {
      timers.setTimeout(() => {
        console.log(name);
        queueMicrotask(() => console.log('job of ' + name));
      }, 1);
    }
    timers.setTimeout(() => { console.log('pending among others'); end(); }, 60);
    // Requests that are answered in time: each moves the wake-up forth and back.
    const requests = setInterval(() => timers.clearTimeout(timers.setTimeout(() => undefined, 20)), 5);
    const guard = host(() => { console.log('starved'); end(); }, 10_000);
    const startMs = performance.now();
    while (performance.now() < startMs + 5) continue;
  `);
  expect([lines, stderr, status]).toEqual([
    ['a', 'job of a', 'b', 'job of b', 'pending among others'],
    '',
    0,
  ]);
});

test('timeouts of another loaded copy can be cleared', () => {
  const { stdout, stderr, status } = runProgram(`
    import { createRequire } from 'node:module';
    import * as ours from 'escapement/timers';
    const others = createRequire(import.meta.url)('escapement/timers');
    console.log(others.setTimeout !== ours.setTimeout);
    ours.clearTimeout(others.setTimeout(console.log, 5, 'never'));
    others.clearInterval(ours.setInterval(console.log, 5, 'never'));
  `);
  expect([stdout, stderr, status]).toEqual(['true\n', '', 0]);
});

test('a process ends when no timeout is pending', () => {
  const { stdout, status } = runProgram(`
    import { setTimeout, clearTimeout } from 'escapement/timers';
    clearTimeout(setTimeout(() => undefined, 600_000));
    setTimeout(() => undefined, 600_000).unref();
  `);
  expect([stdout, status]).toEqual(['', 0]); // a program that does not end is killed, and has no status
});
