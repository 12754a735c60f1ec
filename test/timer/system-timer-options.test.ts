import { ManualClock, systemClock } from 'escapement';
import { describe, expect, test } from 'vitest';
import { resolveOptions } from '../../src/timer/timer.ts';
import { thrownBy } from './support/errors.ts';

describe('the options of a timer', () => {
  test('have these defaults', () => {
    const before = systemClock.now();
    const { startMs, ...rest } = resolveOptions({});
    expect(rest).toEqual({
      name: 'timer',
      tickMs: 1,
      wheelSize: 64,
      clock: systemClock,
      rounding: 'up',
      autoStart: true,
      executor: undefined,
      maxTasksPerTurn: 10_000,
      asyncContext: false,
      onError: undefined,
      metrics: undefined,
    });
    expect(startMs).toBeGreaterThanOrEqual(before);
    expect(startMs).toBeLessThanOrEqual(systemClock.now());
  });

  test('are taken as they are when they are right', () => {
    const clock = new ManualClock({ nowMs: 50 });
    const options = {
      name: 'sessions',
      tickMs: 100,
      wheelSize: 2,
      startMs: 0,
      clock,
      rounding: 'down' as const,
      autoStart: false,
      executor: (run: () => void) => {
        run();
      },
      maxTasksPerTurn: Infinity,
      onError: () => undefined,
    };
    expect(resolveOptions(options)).toMatchObject(options);
  });

  test('startMs defaults to the clock, and is compared with it', () => {
    const clock = new ManualClock({ nowMs: 50.5 });
    expect(resolveOptions({ clock }).startMs).toBe(50.5);
    expect(resolveOptions({ clock, startMs: 50.5 }).startMs).toBe(50.5);
    const error = thrownBy(() => resolveOptions({ clock, startMs: 51 }));
    expect(error).toBeInstanceOf(RangeError);
    expect(String(error)).toContain('50.5');
  });

  test('the clock is read once, and only when the others are right', () => {
    let reads = 0;
    const clock = {
      now: () => ++reads,
      wallNow: () => 0,
      setTimeout: () => ({ cancel: () => undefined, ref: () => undefined, unref: () => undefined }),
    };
    resolveOptions({ clock });
    expect(reads).toBe(1);
    thrownBy(() => resolveOptions({ clock, tickMs: 0 }));
    expect(reads).toBe(1);
  });
});
