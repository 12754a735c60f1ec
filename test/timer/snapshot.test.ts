import { ManualClock, SystemTimer } from 'escapement';
import { describe, expect, test } from 'vitest';
import { TestTask } from './support/tasks.ts';

describe('inspect', () => {
  test('of a fresh timer shows one empty level', () => {
    const timer = new SystemTimer({ clock: new ManualClock({ nowMs: 25.5 }), tickMs: 10, wheelSize: 4 });
    expect(timer.inspect()).toEqual({
      nowMs: 25.5,
      size: 0,
      dueNow: 0,
      levels: [{ tickMs: 10, wheelSize: 4, intervalMs: 40, currentTimeMs: 20, buckets: [] }],
      delayQueue: [],
    });
  });

  test('shows every level, finest first, with the buckets that hold tasks, by index', () => {
    const timer = new SystemTimer({ clock: new ManualClock({ nowMs: 9 }), wheelSize: 4 });
    for (const delayMs of [2, 3, 2, 5, 30, 0, -4]) timer.add(new TestTask(delayMs));
    expect(timer.inspect()).toEqual({
      nowMs: 9,
      size: 7,
      dueNow: 2,
      levels: [
        {
          tickMs: 1,
          wheelSize: 4,
          intervalMs: 4,
          currentTimeMs: 9,
          buckets: [
            { index: 0, expirationMs: 12, size: 1 },
            { index: 3, expirationMs: 11, size: 2 },
          ],
        },
        {
          tickMs: 4,
          wheelSize: 4,
          intervalMs: 16,
          currentTimeMs: 8,
          buckets: [{ index: 3, expirationMs: 12, size: 1 }],
        },
        {
          tickMs: 16,
          wheelSize: 4,
          intervalMs: 64,
          currentTimeMs: 0,
          buckets: [{ index: 2, expirationMs: 32, size: 1 }],
        },
      ],
      delayQueue: [11, 12, 12, 32],
    });
  });

  test('is a copy: the timer goes on, the snapshot stays', () => {
    const clock = new ManualClock();
    const timer = new SystemTimer({ clock });
    timer.add(new TestTask(5));
    const snapshot = timer.inspect();
    const before = structuredClone(snapshot);
    clock.advance(100);
    timer.add(new TestTask(1));
    expect(snapshot).toEqual(before);
    snapshot.delayQueue.push(1);
    snapshot.levels.pop();
    expect(timer.inspect()).toMatchObject({ size: 1, delayQueue: [101] });
  });

  test('inside a task shows what is left', () => {
    const timer = new SystemTimer({ clock: new ManualClock() });
    const seen: number[][] = [];
    for (let i = 0; i < 3; i++) {
      timer.schedule(
        0,
        () => {
          const { size, dueNow } = timer.inspect();
          seen.push([size, dueNow]);
        },
        undefined,
      );
    }
    timer.add(new TestTask(50));
    timer.poll();
    expect(seen).toEqual([
      [3, 2],
      [2, 1],
      [1, 0],
    ]);
  });

  test('after close shows nothing that waits', () => {
    const timer = new SystemTimer({ clock: new ManualClock(), wheelSize: 2 });
    for (const delayMs of [0, 5, 500]) timer.add(new TestTask(delayMs));
    timer.close();
    const { size, dueNow, delayQueue, levels } = timer.inspect();
    expect([size, dueNow, delayQueue]).toEqual([0, 0, []]);
    expect(levels.every((level) => level.buckets.length === 0)).toBe(true);
  });
});
