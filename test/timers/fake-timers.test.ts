import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { clearInterval, setInterval, setTimeout } from 'escapement/timers';
import { runProgram } from '../run-program.ts';

/** A program in which node:test's mock timers are on. `say` writes a line. */
function runMocked(apis: string, source: string): string[] {
  const { stdout, stderr, status } = runProgram(
    `
    import { mock } from 'node:test';
    import { SystemTimer } from 'escapement';
    import * as timers from 'escapement/timers';
    import * as promises from 'escapement/timers/promises';
    const say = (...words) => process.stdout.write(words.join(' ') + '\\n');
    const before = new SystemTimer();
    mock.timers.enable({ apis: ${apis} });
    ${source}
  `,
    { flags: ['--no-warnings'] },
  );
  expect([stderr, status]).toEqual(['', 0]);
  return stdout.trim().split('\n');
}

/**
 * With `Date` they tell the time. Without it only a wake-up does, so time must come in steps: a tick that leaps over a
 * wake-up counts from where it lands.
 */
describe.each([
  [`['setTimeout']`, 1],
  [`['setTimeout', 'Date']`, 10_000],
  [`['setTimeout', 'setInterval', 'setImmediate', 'Date']`, 10_000],
])("node:test's mock timers for %s", (apis, mostMs) => {
  const pass = `
    const pass = (ms) => {
      for (let left = ms; left > 0; left -= ${mostMs}) mock.timers.tick(Math.min(left, ${mostMs}));
    };
  `;

  test("node:test's mock timers for %s move a timer on the system clock, and the timeout functions", () => {
    const lines = runMocked(
      apis,
      `
      ${pass}
      const timer = new SystemTimer();
      timer.schedule(150, say, 'timer');
      timer.sleep(250, 'sleep').then(say);
      timers.setTimeout(say, 500, 'timeout');
      const interval = timers.setInterval(say, 200, 'interval');
      promises.setTimeout(300, 'promise').then(say);
      for (let i = 0; i < 8; i++) {
        pass(50);
        await Promise.resolve();
      }
      pass(99);
      say('499');
      pass(1);
      timers.clearInterval(interval);
      pass(10_000);
      say(timer.size);
      mock.timers.reset();
      `,
    );
    expect(lines).toEqual([
      ...['timer', 'interval', 'sleep', 'promise', 'interval'],
      ...['499', 'timeout', '0'],
    ]);
  });

  test("node:test's mock timers for %s move timers each time that they are enabled, and never early", () => {
    const lines = runMocked(
      apis,
      `
      ${pass}
      for (const ms of [20_000, 3_000, 1]) {
        mock.timers.reset();
        mock.timers.enable({ apis: ${apis} });
        timers.setTimeout(say, ms, 'due');
        new SystemTimer().schedule(ms, say, 'due');
        pass(ms - 1);
        say(ms - 1);
        pass(1);
      }
      `,
    );
    expect(lines).toEqual(['19999', 'due', 'due', '2999', 'due', 'due', '0', 'due', 'due']);
  });

  test("after node:test's mock timers for %s real time goes on", () => {
    const lines = runMocked(
      apis,
      `
      ${pass}
      timers.setTimeout(say, 500, 'mocked');
      pass(500);
      mock.timers.reset();
      const start = performance.now();
      await promises.setTimeout(20);
      const elapsed = performance.now() - start;
      say(elapsed >= 20 && elapsed < 60_000);
      const timer = new SystemTimer();
      await timer.sleep(10);
      await before.sleep(10);
      say('slept');
      `,
    );
    expect(lines).toEqual(['mocked', 'true', 'slept']);
  });
});

test('timeouts that were set before fake timers use real time, under them and after them (real time)', async () => {
  const wait = globalThis.setTimeout;
  let ticks = 0;
  const fired = new Promise<void>((resolve) => setTimeout(resolve, 5));
  const interval = setInterval(() => ticks++, 5);
  const ticked = async (): Promise<void> => {
    for (const start = ticks; ticks < start + 2;) await new Promise((resolve) => wait(resolve, 5));
  };
  vi.useFakeTimers();
  await fired;
  await ticked();
  vi.useRealTimers();
  await ticked();
  clearInterval(interval);
});

/** What a program may fake; `performance` and `Date` show the time. */
const FAKED = [
  ['setTimeout', 'clearTimeout', 'performance'],
  ['setTimeout', 'clearTimeout', 'Date'],
] as const;

describe('fake timers that are installed before the package is loaded', () => {
  beforeEach(() => {
    vi.useFakeTimers();
    vi.resetModules();
  });
  afterEach(() => vi.useRealTimers());

  test('fake timers that were there before the package move its timers, at once', async () => {
    const { SystemTimer } = await import('../../src/index.ts');
    const { setTimeout } = await import('../../src/timers.ts');
    const calls: string[] = [];
    const timer = new SystemTimer();
    timer.schedule(1_000, (call: string) => calls.push(call), 'timer');
    setTimeout(() => calls.push('timeout'), 1_000);
    vi.advanceTimersByTime(999);
    expect(calls).toEqual([]);
    vi.advanceTimersByTime(1);
    expect(calls.sort()).toEqual(['timeout', 'timer']);
    timer.close();
  });

  test('real time goes on after fake timers that were there before the package', async () => {
    const { systemClock } = await import('../../src/index.ts');
    vi.useRealTimers();
    const startMs = performance.now();
    const nowMs = systemClock.now();
    expect(nowMs).toBeGreaterThanOrEqual(startMs);
    expect(nowMs).toBeLessThanOrEqual(performance.now());
    await new Promise<void>((resolve) => systemClock.setTimeout(resolve, 1));
    expect(systemClock.now()).toBeGreaterThan(nowMs);
  });

  test.each(FAKED)('of fake timers that were there before the package, %s suffice', async (...toFake) => {
    vi.useRealTimers();
    vi.useFakeTimers({ toFake });
    const { SystemTimer } = await import('../../src/index.ts');
    const calls: number[] = [];
    const timer = new SystemTimer();
    timer.schedule(20, (call: number) => calls.push(call), 1);
    vi.advanceTimersByTime(19);
    expect(calls).toEqual([]);
    vi.advanceTimersByTime(1);
    expect(calls).toEqual([1]);
    timer.close();
  });

  test('work settles in virtual time under fake timers that were there before the package', async () => {
    const { ManualClock, SystemTimer } = await import('../../src/index.ts');
    const clock = new ManualClock();
    const woken = new SystemTimer({ clock }).sleep(5, 'woken');
    await clock.advanceAsync(5);
    expect(await woken).toBe('woken');
  });
});
