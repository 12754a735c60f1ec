import { afterEach, describe, expect, it, vi } from 'vitest';
import { SystemTimer, systemClock } from 'escapement';

afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
  vi.restoreAllMocks();
});

describe('systemClock', () => {
  it('reads the host: monotonic milliseconds and wall milliseconds', () => {
    const before = performance.now();
    const now = systemClock.now();
    expect(now).toBeGreaterThanOrEqual(before);
    expect(now).toBeLessThanOrEqual(performance.now());
    expect(Math.abs(systemClock.wallNow() - Date.now())).toBeLessThan(1_000);
  });

  it('calls back later, never synchronously (real time)', async () => {
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

  it('cancels, refs and unrefs the host timeout', () => {
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

  it('works where a timeout is a number, as in a browser', () => {
    vi.stubGlobal('setTimeout', () => 7);
    const timeout = systemClock.setTimeout(() => undefined, 5);
    expect(() => {
      timeout.unref();
      timeout.ref();
    }).not.toThrow();
  });

  it('rounds up to whole milliseconds, and stays within what the host can count', () => {
    const delays: unknown[] = [];
    vi.stubGlobal('setTimeout', (_: unknown, ms: unknown) => {
      delays.push(ms);
      return {};
    });
    for (const ms of [0, 0.1, 5, 2 ** 31, 1e12]) systemClock.setTimeout(() => undefined, ms);
    expect(delays).toEqual([0, 1, 5, 2 ** 31 - 1, 2 ** 31 - 1]);
  });

  it('looks its globals up at each call', () => {
    vi.stubGlobal('performance', { now: () => 42.5 });
    vi.stubGlobal('Date', { now: () => 99 });
    expect([systemClock.now(), systemClock.wallNow()]).toEqual([42.5, 99]);
  });

  it.each([
    [['setTimeout', 'clearTimeout']],
    [['performance']],
    [['Date']],
    [['setTimeout', 'performance', 'Date']],
  ])('works while the globals %j are missing', async (names) => {
    for (const name of names) vi.stubGlobal(name, undefined);
    expect(systemClock.now()).toBeGreaterThan(0);
    expect(systemClock.wallNow()).toBeGreaterThan(1e12);
    systemClock.setTimeout(() => expect.unreachable(), 1).cancel();
    await new Promise<void>((resolve) => systemClock.setTimeout(resolve, 1));
  });

  it('does not lose a wake-up to a fake queueMicrotask', async () => {
    vi.stubGlobal('queueMicrotask', () => undefined);
    await new Promise<void>((resolve) => systemClock.setTimeout(resolve, 1));
    vi.unstubAllGlobals();
    await new Promise<void>((resolve) => systemClock.setTimeout(resolve, 1));
  });

  it("so a test runner's fake timers drive a timer that was made before or after them", () => {
    const before = new SystemTimer();
    vi.useFakeTimers();
    const after = new SystemTimer();
    const ran: string[] = [];
    before.schedule(60_000, (name) => ran.push(name), 'before');
    after.schedule(60_000, (name) => ran.push(name), 'after');
    vi.advanceTimersByTime(59_000);
    expect(ran).toEqual([]);
    vi.advanceTimersByTime(1_100);
    expect(ran.sort()).toEqual(['after', 'before']);
  });
});
