import { ManualClock, SystemTimer } from 'escapement';
import { checkTimer } from 'escapement/testing';
import { describe, expect, test } from 'vitest';
import { HandClock } from './support/hand-clock.ts';
import { Journal, TestTask } from './support/tasks.ts';

function expirationsIn(timer: SystemTimer): number[] {
  return timer.inspect().levels.flatMap((level) => level.buckets.map((bucket) => bucket.expirationMs));
}

describe('buckets lie on absolute multiples of tickMs', () => {
  test.each([0, 3, 10, 999, 1_005.75])('wherever the timer started: %d', (nowMs) => {
    const timer = new SystemTimer({ clock: new ManualClock({ nowMs }), tickMs: 10, wheelSize: 4 });
    for (const delayMs of [1, 12, 33.3, 100, 1_000, 54_321]) timer.add(new TestTask(delayMs));
    for (const level of timer.inspect().levels) {
      expect(level.currentTimeMs % level.tickMs).toBe(0);
      for (const { index, expirationMs } of level.buckets) {
        expect(expirationMs % level.tickMs).toBe(0);
        expect((expirationMs / level.tickMs) % level.wheelSize).toBe(index);
      }
    }
    checkTimer(timer);
  });

  test('two timers made at different times wake together', () => {
    const clock = new ManualClock({ nowMs: 3 });
    const one = new SystemTimer({ clock, tickMs: 100 });
    clock.advance(44);
    const two = new SystemTimer({ clock, tickMs: 100 });
    one.add(new TestTask(50));
    two.add(new TestTask(10));
    expect([one.nextExpirationMs(), two.nextExpirationMs()]).toEqual([100, 100]);
  });

  test('a startMs before now changes nothing about them', () => {
    const clock = new ManualClock({ nowMs: 1_234 });
    for (const startMs of [0, 17, 1_230, 1_234]) {
      const timer = new SystemTimer({ clock, tickMs: 10, wheelSize: 3, startMs });
      timer.add(new TestTask(7));
      expect(timer.nextExpirationMs()).toBe(1_250);
      expect(timer.inspect().levels).toHaveLength(1);
      checkTimer(timer);
    }
  });
});

describe('fractional delays and clocks are fine', () => {
  test('a deadline is rounded up to the next tick, and never beyond it', () => {
    const clock = new ManualClock({ nowMs: 0.3 });
    const timer = new SystemTimer({ clock });
    const cases: [number, number][] = [
      [0.7, 1],
      [0.1, 1],
      [0.700_000_1, 2],
      [0.2 + 0.1, 1],
      [5.5, 6],
    ];
    for (const [delayMs, expectedMs] of cases) {
      const id = timer.schedule(delayMs, () => undefined, undefined);
      expect(timer.nextExpirationMs()).toBe(expectedMs);
      timer.cancel(id);
    }
  });

  test('with any tick', () => {
    const clock = new ManualClock({ nowMs: 28.999_999_999_999_996 });
    for (const tickMs of [1, 3, 7, 29, 30]) {
      const timer = new SystemTimer({ clock, tickMs });
      timer.schedule(0.000_000_1, () => undefined, undefined);
      const expirationMs = timer.nextExpirationMs() ?? NaN;
      expect(expirationMs % tickMs).toBe(0);
      expect(expirationMs).toBeGreaterThanOrEqual(clock.now() + 0.000_000_1);
      expect(expirationMs).toBeLessThan(clock.now() + 0.000_000_1 + tickMs);
      checkTimer(timer);
    }
  });

  test('a delay too small to move the clock is due at once or at the next tick', () => {
    const clock = new ManualClock({ nowMs: 1e9 + 0.5 });
    const timer = new SystemTimer({ clock });
    const task = new TestTask(Number.MIN_VALUE);
    timer.add(task);
    checkTimer(timer);
    clock.advance(0.5);
    expect(task.runs).toBe(1);
  });

  test('a wake-up between two ticks runs what is due', () => {
    const clock = new HandClock(0.25);
    const timer = new SystemTimer({ clock });
    const journal = new Journal();
    for (const delayMs of [0.5, 1.5, 2.5]) journal.add(timer, delayMs);
    clock.nowMs = 2.999;
    expect(timer.poll()).toBe(2);
    expect(journal.entries).toEqual([0.5, 1.5]);
    checkTimer(timer);
  });
});

describe('an id is no longer valid inside its own callback', () => {
  test('neither to cancel nor to reschedule', () => {
    const clock = new ManualClock();
    const timer = new SystemTimer({ clock });
    let runs = 0;
    const id = timer.schedule(
      5,
      () => {
        runs++;
        expect(timer.cancel(id)).toBe(false);
        expect(timer.reschedule(id, 10)).toBe(false);
        expect(timer.size).toBe(0);
      },
      undefined,
    );
    clock.advance(100);
    expect(runs).toBe(1);
  });

  test('also when its slot is in use again already', () => {
    const clock = new ManualClock();
    const timer = new SystemTimer({ clock });
    const id = timer.schedule(
      5,
      () => {
        const next = timer.schedule(5, () => undefined, undefined);
        expect(next).not.toBe(id);
        expect(timer.cancel(id)).toBe(false);
        expect(timer.size).toBe(1);
      },
      undefined,
    );
    clock.advance(5);
    expect.assertions(3);
  });
});

describe('delayQueue in a snapshot has one entry per bucket that holds tasks, equal times repeated', () => {
  test('ascending, over all levels', () => {
    const clock = new ManualClock({ nowMs: 9 });
    const timer = new SystemTimer({ clock, wheelSize: 4 });
    for (const delayMs of [2, 2, 5, 30, 3, 3, 7]) timer.add(new TestTask(delayMs));
    const { delayQueue } = timer.inspect();
    expect(delayQueue).toEqual([11, 12, 12, 16, 32]);
    expect(delayQueue).toEqual(expirationsIn(timer).sort((a, b) => a - b));
  });

  test('without those that were emptied, although their bucket may still wait', () => {
    const timer = new SystemTimer({ clock: new ManualClock() });
    const tasks = [10, 20, 20, 30].map((delayMs) => new TestTask(delayMs));
    for (const task of tasks) timer.add(task);
    tasks[0]?.cancel();
    tasks[1]?.cancel();
    tasks[3]?.cancel();
    expect(timer.inspect().delayQueue).toEqual([20]);
    tasks[2]?.cancel();
    expect(timer.inspect().delayQueue).toEqual([]);
    timer.add(new TestTask(10));
    expect(timer.inspect().delayQueue).toEqual([10]);
    checkTimer(timer);
  });

  test('tasks that are due are in no bucket', () => {
    const clock = new HandClock();
    const timer = new SystemTimer({ clock });
    timer.add(new TestTask(0));
    expect(timer.inspect()).toMatchObject({ delayQueue: [], dueNow: 1, size: 1 });
  });
});

describe('after idling, the level count depends on the delay alone', () => {
  test.each([0, 1_000, 1_000_000, 1e12])('%d ms after the start', (idleMs) => {
    const clock = new ManualClock({ nowMs: 77 });
    const levelsFor = (delayMs: number): number => {
      const timer = new SystemTimer({ clock, wheelSize: 20, startMs: 0 });
      clock.advance(idleMs);
      timer.add(new TestTask(delayMs));
      checkTimer(timer);
      return timer.inspect().levels.length;
    };
    // A level reaches one tick less than its interval when the clock stands in the last part of a tick.
    expect([5, 19, 379, 7_599].map(levelsFor)).toEqual([1, 1, 2, 3]);
  });

  test('a task five milliseconds away waits on the first level, and runs then', () => {
    const clock = new ManualClock();
    const timer = new SystemTimer({ clock, wheelSize: 20 });
    timer.add(new TestTask(1));
    clock.advance(1_000_000);
    const task = new TestTask(5);
    timer.add(task);
    const [first, ...above] = timer.inspect().levels;
    expect(first).toMatchObject({
      currentTimeMs: 1_000_000,
      buckets: [{ expirationMs: 1_000_005, size: 1 }],
    });
    expect(above).toEqual([]);
    clock.advance(4);
    expect(task.runs).toBe(0);
    clock.advance(1);
    expect(task.runs).toBe(1);
  });

  test('a delay of 0 after idling is due at once', () => {
    const clock = new HandClock();
    const timer = new SystemTimer({ clock, wheelSize: 20 });
    clock.nowMs = 45;
    timer.add(new TestTask(0));
    timer.add(new TestTask(-5));
    timer.add(new TestTask(-100));
    expect(timer.inspect()).toMatchObject({ dueNow: 3, delayQueue: [] });
    expect(timer.poll()).toBe(3);
  });
});
