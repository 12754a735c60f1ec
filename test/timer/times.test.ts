import { ManualClock, SystemTimer } from 'escapement';
import { checkTimer } from 'escapement/testing';
import { expect, test } from 'vitest';
import { HandClock } from './support/hand-clock.ts';
import { addTask, Journal, TestTask } from './support/tasks.ts';
import { handTimer, manualTimer } from './support/timers.ts';

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

function makeTimer(): { timer: SystemTimer; clock: HandClock; journal: Journal } {
  const { clock, timer, journal } = handTimer({ tickMs: 1, wheelSize: 3, autoStart: false });
  for (let delayMs = 0; delayMs <= 30; delayMs++) journal.add(timer, delayMs);
  return { timer, clock, journal };
}
const clocksOf = (timer: SystemTimer): number[] => timer.inspect().levels.map((level) => level.currentTimeMs);

test("in Kafka's golden trace the first pump runs what Kafka runs inside add", async () => {
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

test("in Kafka's golden trace every task runs at exactly its delay, and every pump finds a bucket", async () => {
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

test.each(GOLDEN_TRACE)(
  "the timer has the state of Kafka's golden trace at %d: size %d, clocks %j, queue %j",
  (nowMs, size, clocks, queue) => {
    const { timer, clock } = makeTimer();
    timer.poll();
    for (clock.nowMs = 1; clock.nowMs < nowMs; clock.nowMs++) timer.poll();
    expect(timer.poll()).toBe(1);
    expect(timer.size).toBe(size);
    expect(clocksOf(timer)).toEqual(clocks);
    expect(timer.inspect().delayQueue).toEqual(queue);
  },
);

test.each([
  ['down', 1_005, 1_000],
  ['down', 1_009, 1_000],
  ['down', 1_029, 1_020],
  ['down', 1_249, 1_240],
  ['down', 2_255, 2_250],
  ['up', 1_005, 1_010],
  ['up', 1_009, 1_010],
  ['up', 1_010, 1_010],
  ['up', 1_029, 1_030],
  ['up', 1_249, 1_250],
  ['up', 2_255, 2_260],
] as const)('rounding %s, an expiration of %d runs at %d', (rounding, expirationMs, runsAtMs) => {
  const { clock, timer, journal } = manualTimer({ nowMs: 1_000, tickMs: 10, wheelSize: 20, rounding });
  addTask(timer, expirationMs - 1_000, () => journal.write(clock.now()));
  expect(journal.entries).toEqual([]);
  clock.advance(0);
  clock.advance(2_000);
  expect(journal.entries).toEqual([runsAtMs]);
});

test('after a stall a task that is not overdue is on the level that fits the rest of its delay', () => {
  const { clock, timer, journal } = handTimer({ wheelSize: 4 });
  for (const delayMs of [3, 17, 63, 1_000]) journal.add(timer, delayMs);
  clock.nowMs = 61;
  clock.fire();
  expect(journal.entries).toEqual([3, 17]);
  expect(timer.inspect().delayQueue).toEqual([63, 768]);
  expect(clock.armedForMs).toBe(63);
  checkTimer(timer);
});

test('a task moves at most once per level before it runs', () => {
  const { clock, timer } = manualTimer({ wheelSize: 4 });
  addTask(timer, 4 ** 6 - 1);
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

test.each([0, 3, 10, 999, 1_005.75])(
  'buckets lie on multiples of the tick wherever the timer started: %d',
  (nowMs) => {
    const { timer } = manualTimer({ nowMs, tickMs: 10, wheelSize: 4 });
    for (const delayMs of [1, 12, 33.3, 100, 1_000, 54_321]) timer.add(new TestTask(delayMs));
    for (const level of timer.inspect().levels) {
      expect(level.currentTimeMs % level.tickMs).toBe(0);
      for (const { index, expirationMs } of level.buckets) {
        expect(expirationMs % level.tickMs).toBe(0);
        expect((expirationMs / level.tickMs) % level.wheelSize).toBe(index);
      }
    }
    checkTimer(timer);
  },
);

test('a startMs before now does not move the buckets', () => {
  const clock = new ManualClock({ nowMs: 1_234 });
  for (const startMs of [0, 17, 1_230, 1_234]) {
    const timer = new SystemTimer({ clock, tickMs: 10, wheelSize: 3, startMs });
    addTask(timer, 7);
    expect(timer.nextExpirationMs()).toBe(1_250);
    expect(timer.inspect().levels).toHaveLength(1);
    checkTimer(timer);
  }
});

test('a deadline is rounded up to the next tick, and never beyond it', () => {
  const { timer } = manualTimer({ nowMs: 0.3 });
  const cases: [number, number][] = [
    [0.7, 1],
    [0.1, 1],
    [0.700_000_1, 2],
    [0.2 + 0.1, 1],
    [5.5, 6],
  ];
  for (const [delayMs, expectedMs] of cases) {
    const id = timer.schedule(delayMs, () => undefined);
    expect(timer.nextExpirationMs()).toBe(expectedMs);
    timer.cancel(id);
  }
});

test('a delay too small to change the time of the clock is due at once or at the next tick', () => {
  const { clock, timer } = manualTimer({ nowMs: 1e9 + 0.5 });
  const task = addTask(timer, Number.MIN_VALUE);
  checkTimer(timer);
  clock.advance(0.5);
  expect(task.runs).toBe(1);
});

test('delayQueue of a snapshot has no emptied bucket', () => {
  const { timer } = manualTimer();
  const tasks = [10, 20, 20, 30].map((delayMs) => new TestTask(delayMs));
  for (const task of tasks) timer.add(task);
  tasks[0]?.cancel();
  tasks[1]?.cancel();
  tasks[3]?.cancel();
  expect(timer.inspect().delayQueue).toEqual([20]);
  tasks[2]?.cancel();
  expect(timer.inspect().delayQueue).toEqual([]);
  addTask(timer, 10);
  expect(timer.inspect().delayQueue).toEqual([10]);
  checkTimer(timer);
});

test.each([0, 1_000, 1_000_000, 1e12])(
  'after %d ms of idling the level count depends on the delay alone',
  (idleMs) => {
    const clock = new ManualClock({ nowMs: 77 });
    const levelsFor = (delayMs: number): number => {
      const timer = new SystemTimer({ clock, wheelSize: 20, startMs: 0 });
      clock.advance(idleMs);
      addTask(timer, delayMs);
      checkTimer(timer);
      return timer.inspect().levels.length;
    };
    // A level reaches one tick less than its interval when the clock stands in the last part of a tick.
    expect([5, 19, 379, 7_599].map(levelsFor)).toEqual([1, 1, 2, 3]);
  },
);
