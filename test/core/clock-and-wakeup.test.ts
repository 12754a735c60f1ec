import { systemClock, SystemTimer } from 'escapement';
import { afterEach, describe, expect, it, test, vi } from 'vitest';
import { DAY_MS, LAST_DATE_MS, utcDay } from '../../src/core/units.ts';
import { Wakeup } from '../../src/core/wakeup.ts';
import { runProgram } from '../run-program.ts';
import { HandClock } from '../timer/support/hand-clock.ts';

describe('systemClock', () => {
  afterEach(() => {
    vi.useRealTimers();
    vi.unstubAllGlobals();
    vi.restoreAllMocks();
  });

  it('the system clock reads the monotonic time and the wall time of the host', () => {
    const before = performance.now();
    const now = systemClock.now();
    expect(now).toBeGreaterThanOrEqual(before);
    expect(now).toBeLessThanOrEqual(performance.now());
    const wallBefore = Date.now();
    const wallNow = systemClock.wallNow();
    expect(wallNow).toBeGreaterThanOrEqual(wallBefore);
    expect(wallNow).toBeLessThanOrEqual(Date.now());
  });

  it('a timeout of the system clock calls back later, never synchronously (real time)', async () => {
    let called = false;
    const fired = new Promise<void>((resolve) => {
      systemClock.setTimeout(() => {
        called = true;
        resolve();
      }, 0);
    });
    expect(called).toBe(false);
    await fired;
    expect(called).toBe(true);
  });

  it.each([
    [[0], ['b', 'c']],
    [[0, 2], ['b']],
  ])(
    'of timeouts that are set in one turn, those at %j can be cancelled in it (real time)',
    async (indexes, left) => {
      const fired: string[] = [];
      const timeouts = ['a', 'b', 'c'].map((name) => systemClock.setTimeout(() => fired.push(name), 0));
      for (const index of indexes) timeouts[index]?.cancel();
      await new Promise<void>((resolve) => systemClock.setTimeout(resolve, 2));
      expect(fired.sort()).toEqual(left);
    },
  );

  it('a timeout of the system clock cancels, refs and unrefs the timeout of the host', () => {
    const handle = { ref: vi.fn(), unref: vi.fn() };
    const clear = vi.fn();
    vi.stubGlobal('setTimeout', () => handle);
    vi.stubGlobal('clearTimeout', clear);
    const timeout = systemClock.setTimeout(() => undefined, 5);
    timeout.unref();
    timeout.ref();
    timeout.cancel();
    expect(handle.unref).toHaveBeenCalledOnce();
    expect(handle.ref).toHaveBeenCalledOnce();
    expect(clear).toHaveBeenCalledWith(handle);
  });

  it('a timeout of the system clock needs a function', () => {
    expect(() => systemClock.setTimeout('stop()' as never, 5)).toThrow(/^callback must be a function/);
  });

  it('the system clock works where a timeout is a number, as in a browser', () => {
    vi.stubGlobal('setTimeout', () => 7);
    const timeout = systemClock.setTimeout(() => undefined, 5);
    expect(() => {
      timeout.unref();
      timeout.ref();
    }).not.toThrow();
  });

  it('delays of the system clock are rounded up to whole milliseconds, within the range of the host', () => {
    const delays: unknown[] = [];
    vi.stubGlobal('setTimeout', (_: unknown, ms: unknown) => {
      delays.push(ms);
      return {};
    });
    for (const ms of [0, 0.1, 5, 2 ** 31, 1e12]) systemClock.setTimeout(() => undefined, ms);
    expect(delays).toEqual([0, 1, 5, 2 ** 31 - 1, 2 ** 31 - 1]);
  });

  it('the system clock keeps the time of the host while its setTimeout is wrapped, as error trackers do', () => {
    const host = globalThis.setTimeout;
    vi.stubGlobal('setTimeout', (...args: Parameters<typeof host>) => host(...args));
    const first = systemClock.now();
    while (performance.now() <= first + 1) continue;
    const now = systemClock.now();
    expect(now).toBeGreaterThan(first + 1);
    expect(now).toBeLessThanOrEqual(performance.now());
  });

  it('a wrapped setTimeout is no fake where the runtime makes node:timers when it is first read', () => {
    const { lines, stderr, status } = runProgram(`
      const { getBuiltinModule } = process;
      let made;
      process.getBuiltinModule = (name) =>
        name === 'node:timers' ? (made ??= { setTimeout, clearTimeout }) : getBuiltinModule(name);
      const { systemClock } = await import('escapement');
      const host = globalThis.setTimeout;
      globalThis.setTimeout = (...args) => host(...args);
      const first = systemClock.now();
      while (performance.now() <= first + 1) continue;
      console.log(systemClock.now() > first);
    `);
    expect([lines, stderr, status]).toEqual([['true'], '', 0]);
  });

  it('the system clock looks its globals up at each call', () => {
    vi.stubGlobal('performance', { now: () => 42.5 });
    vi.stubGlobal('Date', { now: () => 99 });
    expect([systemClock.now(), systemClock.wallNow()]).toEqual([42.5, 99]);
  });

  it.each([
    [['setTimeout', 'clearTimeout']],
    [['performance']],
    [['Date']],
    [['setTimeout', 'performance', 'Date']],
  ])('the system clock works while the globals %j are missing', async (names) => {
    for (const name of names) vi.stubGlobal(name, undefined);
    expect(systemClock.now()).toBeGreaterThan(0);
    expect(systemClock.wallNow()).toBeGreaterThan(1e12);
    systemClock.setTimeout(() => expect.unreachable(), 1).cancel();
    await new Promise<void>((resolve) => systemClock.setTimeout(resolve, 1));
  });

  it('the system clock does not lose a wake-up to a fake queueMicrotask', async () => {
    vi.stubGlobal('queueMicrotask', () => undefined);
    await new Promise<void>((resolve) => systemClock.setTimeout(resolve, 1));
    vi.unstubAllGlobals();
    await new Promise<void>((resolve) => systemClock.setTimeout(resolve, 1));
  });

  it('fake timers of a test runner drive a timer that was created before or after them', () => {
    const before = new SystemTimer();
    // The fake time begins at 0: the tasks are due after the time that `before` has read.
    const delayMs = Math.ceil(performance.now()) + 60_000;
    vi.useFakeTimers();
    const after = new SystemTimer();
    const ran: string[] = [];
    before.schedule(delayMs, (name) => ran.push(name), 'before');
    after.schedule(delayMs, (name) => ran.push(name), 'after');
    vi.advanceTimersByTime(delayMs - 1_000);
    expect(ran).toEqual([]);
    vi.advanceTimersByTime(1_100);
    expect(ran.sort()).toEqual(['after', 'before']);
  });
});

it('a wake-up that comes early is armed again', () => {
  const clock = new HandClock();
  const wokenAt: number[] = [];
  const wakeup = new Wakeup(clock, (nowMs) => wokenAt.push(nowMs));
  wakeup.moveTo(10);
  clock.nowMs = 9.25;
  clock.fire();
  expect(wokenAt).toEqual([]);
  expect(clock.delaysMs.at(-1)).toBe(0.75);
  clock.nowMs = 14;
  clock.fire();
  expect(wokenAt).toEqual([14]);
});

test('utcDay returns the day in UTC, up to its last millisecond', () => {
  const midnight = Date.UTC(2026, 10, 21);
  expect(utcDay(midnight)).toBe('2026-11-21');
  expect(utcDay(midnight + DAY_MS - 1)).toBe('2026-11-21');
  expect(utcDay(midnight - 1)).toBe('2026-11-20');
});

test('LAST_DATE_MS is the last time that a Date can hold', () => {
  expect(new Date(LAST_DATE_MS).getTime()).toBe(LAST_DATE_MS);
  expect(new Date(LAST_DATE_MS + 1).getTime()).toBeNaN();
});
