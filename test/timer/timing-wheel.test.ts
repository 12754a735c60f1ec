import { describe, expect, test } from 'vitest';
import { DelayQueue } from '../../src/timer/timer-task-list.ts';
import { TimerTable } from '../../src/timer/timer-table.ts';
import type { TimerTaskList } from '../../src/timer/timer-task-list.ts';
import { TimingWheel } from '../../src/timer/timing-wheel.ts';

function makeWheel(tickMs: number, wheelSize: number, startMs: number) {
  const table = new TimerTable();
  const delayQueue = new DelayQueue();
  const wheel = new TimingWheel(tickMs, wheelSize, startMs, table, delayQueue);
  const add = (expirationMs: number): TimerTaskList | undefined => {
    const slot = table.allocate(() => undefined, undefined);
    table.setExpiration(slot, expirationMs);
    return wheel.add(slot);
  };
  return { wheel, delayQueue, add };
}

describe('a timing wheel', () => {
  test('takes what expires within its turn, in the bucket of its absolute time', () => {
    const { wheel, delayQueue, add } = makeWheel(10, 4, 1_005);
    expect([wheel.currentTimeMs, wheel.nextTickMs, wheel.intervalMs]).toEqual([1_000, 1_010, 40]);
    const bucket = add(1_020);
    expect(bucket).toMatchObject({ expirationMs: 1_020, tickMs: 10, isQueued: true, size: 1 });
    expect(wheel.buckets.indexOf(bucket)).toBe(102 % 4);
    expect(add(1_020)).toBe(bucket);
    expect(bucket?.size).toBe(2);
    expect(delayQueue.expirations()).toEqual([1_020]);
    expect(wheel.overflowWheel).toBeUndefined();
  });

  test('gives back what is due: everything before its next tick', () => {
    const { delayQueue, add } = makeWheel(10, 4, 1_000);
    expect([0, 999, 1_000, 1_009].map(add)).toEqual([undefined, undefined, undefined, undefined]);
    expect(add(1_010)?.expirationMs).toBe(1_010);
    expect(delayQueue.expirations()).toEqual([1_010]);
  });

  test('passes on what lies beyond its turn to an overflow wheel, made for it', () => {
    const { wheel, add } = makeWheel(1, 4, 9);
    expect(add(12)?.tickMs).toBe(1);
    expect(wheel.overflowWheel).toBeUndefined();
    expect(add(13)).toMatchObject({ tickMs: 4, expirationMs: 12 });
    expect(add(39)).toMatchObject({ tickMs: 16, expirationMs: 32 });
    const [second, third] = [wheel.overflowWheel, wheel.overflowWheel?.overflowWheel];
    expect([second?.currentTimeMs, third?.currentTimeMs]).toEqual([8, 0]);
    expect(third?.overflowWheel).toBeUndefined();
  });

  test('makes as many overflow wheels as one expiration needs', () => {
    const { wheel, add } = makeWheel(1, 2, 0);
    const bucket = add(Number.MAX_SAFE_INTEGER);
    let levels = 0;
    for (let level: TimingWheel | undefined = wheel; level; level = level.overflowWheel) levels++;
    expect(levels).toBe(53);
    expect(bucket).toMatchObject({ tickMs: 2 ** 52, expirationMs: 2 ** 52 });
  });

  test('moves its clock, and those above, forward only', () => {
    const { wheel, add } = makeWheel(1, 4, 0);
    add(63);
    wheel.advanceClock(21.7);
    const clocks = (): (number | undefined)[] => [
      wheel.currentTimeMs,
      wheel.overflowWheel?.currentTimeMs,
      wheel.overflowWheel?.overflowWheel?.currentTimeMs,
    ];
    expect(clocks()).toEqual([21, 20, 16]);
    for (const earlierMs of [21, 20.9, 3, 0]) {
      wheel.advanceClock(earlierMs);
      expect(clocks()).toEqual([21, 20, 16]);
    }
  });

  test('uses a bucket again for its next turn', () => {
    const { wheel, delayQueue, add } = makeWheel(1, 4, 0);
    const bucket = add(2);
    expect(delayQueue.poll(2)).toBe(bucket);
    wheel.advanceClock(3);
    expect(add(6)).toBe(bucket);
    expect(bucket).toMatchObject({ expirationMs: 6, isQueued: true });
  });
});
