import fc from 'fast-check';
import { expect, test } from 'vitest';
import { TimerTable } from '../../src/timer/timer-table.ts';
import { TimerTaskList } from '../../src/timer/timer-task-list.ts';
import { isWorthSorting, sortSpan, TimerWheels } from '../../src/timer/timer-wheels.ts';
import type { Rounding } from '../../src/timer/timer.ts';
import { addTask, TestTask } from './support/tasks.ts';
import { manualTimer, slotsOf } from './support/timers.ts';

function makeWheels(tickMs: number, wheelSize: number, startMs: number, rounding: Rounding = 'up') {
  const wheels = new TimerWheels(tickMs, wheelSize, startMs, rounding);
  const place = (delayMs: number, nowMs: number): number => {
    wheels.catchUp(nowMs);
    const slot = wheels.table.allocate(() => undefined, undefined);
    wheels.place(slot, delayMs, nowMs);
    return slot;
  };
  const due = (): number[] => {
    const slots: number[] = [];
    for (let slot = wheels.due.take(); slot !== 0; slot = wheels.due.take()) slots.push(slot);
    return slots;
  };
  return { wheels, place, due };
}

test.each<[Rounding, number, number, number]>([
  ['up', 1, 5.000_001, 6],
  ['up', 1, 5, 5],
  ['up', 10, 21, 30],
  ['up', 10, 20, 20],
  ['up', 7, 2 ** 53, 9_007_199_254_740_988],
  ['up', 1, Number.MAX_VALUE, Number.MAX_SAFE_INTEGER],
  ['down', 1, 5.9, 5],
  ['down', 10, 29.9, 20],
  ['down', 7, 2 ** 60, 9_007_199_254_740_988],
])('rounding %s to a tick of %d makes %d a deadline of %d', (rounding, tickMs, delayMs, expirationMs) => {
  const { wheels, place } = makeWheels(tickMs, 4, 0, rounding);
  expect(wheels.table.expirationOf(place(delayMs, 0))).toBe(expirationMs);
});

test('a span with more entries than a turn may move loses none of its finer buckets', () => {
  const { wheels, place, due } = makeWheels(1, 4, 0);
  const [c, a] = [place(7, 0), place(5, 0)];
  const b = place(3, 3);
  wheels.movesPerTurn = 2;
  for (let turn = 0; turn < 4; turn++) wheels.startTurn(50, true);
  expect(due()).toEqual([a, b, c]);
});

test('entries that are sorted count as moves of the turn', () => {
  const { wheels, place } = makeWheels(1, 4, 0);
  for (const delayMs of [5, 6, 9, 10]) place(delayMs, 0);
  wheels.movesPerTurn = 2;
  wheels.startTurn(50, true);
  expect(wheels.due.size).toBe(2);
});

test('a span is not sorted before a coarser bucket that has entries for it', () => {
  const { wheels, place, due } = makeWheels(1, 4, 0);
  const [a, c] = [place(17, 0), place(30, 0)];
  const b = place(6, 12);
  wheels.startTurn(100, false);
  expect(due()).toEqual([a, b, c]);
});

const callback = (): void => undefined;

function bucketOf(table: TimerTable, tickMs: number, expirationsMs: readonly number[]): TimerTaskList {
  const bucket = new TimerTaskList(table, tickMs);
  for (const expirationMs of expirationsMs) {
    const slot = table.allocate(callback, undefined);
    table.setExpiration(slot, expirationMs);
    bucket.add(slot);
  }
  return bucket;
}

test('sortSpan empties its buckets in order of expiration, then of bucket, then of arrival', () => {
  const span = fc.record({
    startMs: fc.nat(1_000),
    tickMs: fc.integer({ min: 1, max: 50 }),
    ticks: fc.integer({ min: 1, max: 40 }),
  });
  const buckets = fc.array(fc.array(fc.nat(39), { maxLength: 60 }), { minLength: 1, maxLength: 5 });
  fc.assert(
    fc.property(span, buckets, ({ startMs, tickMs, ticks }, contents) => {
      const table = new TimerTable();
      const lists = contents.map((offsets) =>
        bucketOf(
          table,
          tickMs,
          offsets.map((offset) => (startMs + (offset % ticks)) * tickMs),
        ),
      );
      // Slots were handed out in the order of the lists, so a stable sort by expiration is the answer.
      const entries = lists.flatMap((list) => slotsOf(table, list));
      const expected = entries.sort((a, b) => table.expirationOf(a) - table.expirationOf(b));
      const sorted = sortSpan(lists, entries.length, startMs * tickMs, tickMs, ticks, table);
      expect([...sorted]).toEqual(expected);
      expect(lists.every((list) => list.isEmpty && list.size === 0)).toBe(true);
    }),
  );
});

test.each([
  ['the finest bucket', 1, 1_000, false],
  ['one entry in four ticks', 4_096, 1_024, true],
  ['one fewer', 4_096, 1_023, false],
  ['too many ticks to count', 2 ** 17, 2 ** 17, false],
  ['as many entries as may be', 64, 2 ** 17, true],
  ['more than that', 64, 2 ** 17 + 1, false],
])('only dense spans are sorted: %s', (_, ticks, entries, isWorthIt) =>
  expect(isWorthSorting(ticks, entries)).toBe(isWorthIt),
);

/** What is due after the wheels were late, level by level and at once: both must be the same. */
function expire(delaysMs: readonly number[], stops: readonly number[], lateMs: number): number[] {
  const wheels = new TimerWheels(1, 4, 0, 'up');
  let nowMs = 0;
  for (const [i, delayMs] of delaysMs.entries()) {
    nowMs = stops[i] ?? nowMs;
    wheels.catchUp(nowMs);
    wheels.place(wheels.table.allocate(callback, undefined), delayMs, nowMs);
  }
  for (; nowMs < lateMs; nowMs++) wheels.catchUp(nowMs);
  wheels.catchUp(100_000);
  return slotsOf(wheels.table, wheels.due.list);
}

test('late wheels run entries in the order in which they would have fallen due one by one', () => {
  const delays = fc.array(fc.integer({ min: 1, max: 80 }), { minLength: 1, maxLength: 80 });
  const waits = fc.array(fc.nat(1), { maxLength: 20 });
  fc.assert(
    fc.property(delays, waits, (delaysMs, waitsMs) => {
      let stop = 0;
      const stops = waitsMs.map((waitMs) => (stop += waitMs));
      expect(expire(delaysMs, stops, 0)).toEqual(expire(delaysMs, stops, 200));
    }),
  );
});

test('a snapshot of a new timer shows one empty level', () => {
  const { timer } = manualTimer({ nowMs: 25.5, tickMs: 10, wheelSize: 4 });
  expect(timer.inspect()).toEqual({
    nowMs: 25.5,
    size: 0,
    dueNow: 0,
    levels: [{ tickMs: 10, wheelSize: 4, intervalMs: 40, currentTimeMs: 20, buckets: [] }],
    delayQueue: [],
  });
});

test('a snapshot shows every level, finest first, with the buckets that hold tasks, by index', () => {
  const { timer } = manualTimer({ nowMs: 9, wheelSize: 4 });
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

test('a snapshot is a copy: it stays as it is when the timer goes on', () => {
  const { clock, timer } = manualTimer();
  addTask(timer, 5);
  const snapshot = timer.inspect();
  const before = structuredClone(snapshot);
  clock.advance(100);
  addTask(timer, 1);
  expect(snapshot).toEqual(before);
  snapshot.delayQueue.push(1);
  snapshot.levels.pop();
  expect(timer.inspect()).toMatchObject({ size: 1, delayQueue: [101] });
});

test('a snapshot inside a task shows what is still pending', () => {
  const { timer } = manualTimer();
  const seen: number[][] = [];
  for (let i = 0; i < 3; i++) {
    timer.schedule(0, () => {
      const { size, dueNow } = timer.inspect();
      seen.push([size, dueNow]);
    });
  }
  addTask(timer, 50);
  timer.poll();
  expect(seen).toEqual([
    [3, 2],
    [2, 1],
    [1, 0],
  ]);
});
