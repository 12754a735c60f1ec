import { ManualClock, SystemTimer } from 'escapement';
import { checkTimer } from 'escapement/testing';
import { describe, expect, test } from 'vitest';
import { HandClock } from './support/hand-clock.ts';
import { Journal, TestTask } from './support/tasks.ts';

/** Moments worth looking at in the trace: now, size, the clocks of the four levels, and what is queued after. */
const GOLDEN_TRACE: readonly (readonly [number, number, readonly number[], readonly number[]])[] = [
  [1, 29, [1, 0, 0, 0], [2, 3, 6, 9, 18, 27]],
  [2, 28, [2, 0, 0, 0], [3, 6, 9, 18, 27]],
  [3, 27, [3, 3, 0, 0], [4, 5, 6, 9, 18, 27]],
  [6, 24, [6, 6, 0, 0], [7, 8, 9, 18, 27]],
  [9, 21, [9, 9, 9, 0], [10, 11, 12, 15, 18, 27]],
  [18, 12, [18, 18, 18, 0], [19, 20, 21, 24, 27]],
  [27, 3, [27, 27, 27, 27], [28, 29, 30]],
  [30, 0, [30, 30, 27, 27], []],
];

describe("Kafka's golden trace: tick 1, wheel size 3, delays 0 to 30 added at 0, one pump per millisecond", () => {
  function makeTimer(): { timer: SystemTimer; clock: HandClock; journal: Journal } {
    const clock = new HandClock();
    const timer = new SystemTimer({ clock, tickMs: 1, wheelSize: 3, autoStart: false });
    const journal = new Journal();
    for (let delayMs = 0; delayMs <= 30; delayMs++) journal.add(timer, delayMs);
    return { timer, clock, journal };
  }
  const clocksOf = (timer: SystemTimer): number[] =>
    timer.inspect().levels.map((level) => level.currentTimeMs);

  test('after the adds, and after the first pump, which runs what Kafka runs inside add', async () => {
    const { timer, journal } = makeTimer();
    expect(journal.entries).toEqual([]);
    expect([timer.size, timer.inspect().dueNow]).toEqual([31, 1]);
    expect(timer.inspect().levels.map((level) => level.tickMs)).toEqual([1, 3, 9, 27]);
    expect(clocksOf(timer)).toEqual([0, 0, 0, 0]);
    expect(timer.inspect().delayQueue).toEqual([1, 2, 3, 6, 9, 18, 27]);
    expect(await timer.advanceClock(0)).toBe(true);
    expect(journal.entries).toEqual([0]);
    expect(timer.size).toBe(30);
  });

  test('every task runs at exactly its delay, and every pump finds a bucket', async () => {
    const { timer, clock, journal } = makeTimer();
    await timer.advanceClock(0);
    for (clock.nowMs = 1; clock.nowMs <= 30; clock.nowMs++) {
      journal.take();
      expect(await timer.advanceClock(0)).toBe(true);
      expect(journal.entries).toEqual([clock.nowMs]);
      checkTimer(timer);
    }
    clock.nowMs = 31;
    expect(await timer.advanceClock(0)).toBe(false);
  });

  test.each(GOLDEN_TRACE)('at %d: size %d, clocks %j, queue %j', (nowMs, size, clocks, queue) => {
    const { timer, clock } = makeTimer();
    timer.poll();
    for (clock.nowMs = 1; clock.nowMs < nowMs; clock.nowMs++) timer.poll();
    expect(timer.poll()).toBe(1);
    expect(timer.size).toBe(size);
    expect(clocksOf(timer)).toEqual(clocks);
    expect(timer.inspect().delayQueue).toEqual(queue);
  });

  test('one task per pump, whichever of poll and advanceClock pumps', async () => {
    const { timer, clock, journal } = makeTimer();
    for (clock.nowMs = 0; clock.nowMs <= 30; clock.nowMs++) {
      if (clock.nowMs % 2 === 0) expect(timer.poll()).toBe(1);
      else expect(await timer.advanceClock(0)).toBe(true);
    }
    expect(journal.entries).toEqual(Array.from({ length: 31 }, (_, i) => i));
  });
});

describe("Kafka's worked examples: tick 10, start 1000, rounding down", () => {
  const options = { tickMs: 10, wheelSize: 20, rounding: 'down' as const };

  test.each([
    [1_005, 1_000],
    [1_009, 1_000],
    [1_029, 1_020],
    [1_249, 1_240],
    [2_255, 2_250],
  ])('an expiration of %d runs at %d', (expirationMs, runsAtMs) => {
    const clock = new ManualClock({ nowMs: 1_000 });
    const timer = new SystemTimer({ clock, ...options });
    let ranAtMs: number | undefined;
    timer.add(
      new TestTask(expirationMs - 1_000, () => {
        ranAtMs = clock.now();
      }),
    );
    expect(ranAtMs).toBeUndefined();
    clock.advance(0);
    clock.advance(2_000);
    expect(ranAtMs).toBe(runsAtMs);
  });

  test.each([
    [1_005, 1_010],
    [1_009, 1_010],
    [1_010, 1_010],
    [1_029, 1_030],
    [1_249, 1_250],
    [2_255, 2_260],
  ])('rounding up, an expiration of %d runs at %d', (expirationMs, runsAtMs) => {
    const clock = new ManualClock({ nowMs: 1_000 });
    const timer = new SystemTimer({ clock, ...options, rounding: 'up' });
    let ranAtMs: number | undefined;
    timer.add(
      new TestTask(expirationMs - 1_000, () => {
        ranAtMs = clock.now();
      }),
    );
    clock.advance(2_000);
    expect(ranAtMs).toBe(runsAtMs);
  });
});

describe('catch-up after a stall', () => {
  test('a thousand tasks that are overdue run in one pump, in order of expiration', async () => {
    const clock = new HandClock();
    const timer = new SystemTimer({ clock, wheelSize: 20, autoStart: false });
    const journal = new Journal();
    for (let i = 0; i < 1_000; i++) journal.add(timer, ((i * 387) % 1_000) + 1);
    clock.nowMs = 5_000;
    expect(await timer.advanceClock(0)).toBe(true);
    expect(journal.entries).toEqual(Array.from({ length: 1_000 }, (_, i) => i + 1));
    expect([timer.size, timer.inspect().levels[0]?.currentTimeMs]).toEqual([0, 5_000]);
    expect(await timer.advanceClock(0)).toBe(false);
    checkTimer(timer);
  });

  test('what is not overdue stays, on the level that fits what is left of its delay', () => {
    const clock = new HandClock();
    const timer = new SystemTimer({ clock, wheelSize: 4 });
    const journal = new Journal();
    for (const delayMs of [3, 17, 63, 1_000]) journal.add(timer, delayMs);
    clock.nowMs = 61;
    clock.fire();
    expect(journal.entries).toEqual([3, 17]);
    expect(timer.inspect().delayQueue).toEqual([63, 768]);
    expect(clock.armedForMs).toBe(63);
    checkTimer(timer);
  });

  test('a task moves at most once per level before it runs', () => {
    const clock = new ManualClock();
    const timer = new SystemTimer({ clock, wheelSize: 4 });
    timer.add(new TestTask(4 ** 6 - 1));
    const levels = timer.inspect().levels.length;
    let moves = 0;
    for (let next = timer.nextExpirationMs(); next !== undefined; next = timer.nextExpirationMs()) {
      moves++;
      clock.advance(next - clock.now());
    }
    expect(levels).toBe(6);
    expect(moves).toBe(levels);
    expect(clock.now()).toBe(4 ** 6 - 1);
  });
});
