import fc from 'fast-check';
import { expect, test } from 'vitest';
import { TimerTable } from '../../src/timer/timer-table.ts';
import { DelayQueue, TimerTaskList } from '../../src/timer/timer-task-list.ts';
import { isWorthSorting, sortSpan, TimerWheels } from '../../src/timer/timer-wheels.ts';
import type { Rounding } from '../../src/timer/timer.ts';
import { TimingWheel } from '../../src/timer/timing-wheel.ts';
import { addTask, TestTask } from './support/tasks.ts';
import { manualTimer, slotsOf } from './support/timers.ts';

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

test('a wheel adds an entry within its turn to the bucket of its absolute time', () => {
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

test('a wheel refuses an entry that expires before its next tick', () => {
  const { delayQueue, add } = makeWheel(10, 4, 1_000);
  expect([0, 999, 1_000, 1_009].map(add)).toEqual([undefined, undefined, undefined, undefined]);
  expect(add(1_010)?.expirationMs).toBe(1_010);
  expect(delayQueue.expirations()).toEqual([1_010]);
});

test('a wheel makes an overflow wheel for an entry beyond its turn', () => {
  const { wheel, add } = makeWheel(1, 4, 9);
  expect(add(12)?.tickMs).toBe(1);
  expect(wheel.overflowWheel).toBeUndefined();
  expect(add(13)).toMatchObject({ tickMs: 4, expirationMs: 12 });
  expect(add(39)).toMatchObject({ tickMs: 16, expirationMs: 32 });
  const [second, third] = [wheel.overflowWheel, wheel.overflowWheel?.overflowWheel];
  expect([second?.currentTimeMs, third?.currentTimeMs]).toEqual([8, 0]);
  expect(third?.overflowWheel).toBeUndefined();
});

test('a wheel makes as many overflow wheels as one expiration needs', () => {
  const { wheel, add } = makeWheel(1, 2, 0);
  const bucket = add(Number.MAX_SAFE_INTEGER);
  let levels = 0;
  for (let level: TimingWheel | undefined = wheel; level; level = level.overflowWheel) levels++;
  expect(levels).toBe(53);
  expect(bucket).toMatchObject({ tickMs: 2 ** 52, expirationMs: 2 ** 52 });
});

test('the clocks of the wheels only advance', () => {
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

test('a wheel uses a bucket again in its next turn', () => {
  const { wheel, delayQueue, add } = makeWheel(1, 4, 0);
  const bucket = add(2);
  expect(delayQueue.poll(2)).toBe(bucket);
  wheel.advanceClock(3);
  expect(add(6)).toBe(bucket);
  expect(bucket).toMatchObject({ expirationMs: 6, isQueued: true });
});

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

test('an entry that is due does not overtake those of a bucket that a turn has left half empty', () => {
  const { wheels, place, due } = makeWheels(1, 4, 0);
  wheels.movesPerTurn = 1;
  const [a, b] = [place(2, 0), place(2, 0)];
  wheels.startTurn(2, true);
  const c = place(0, 2);
  wheels.startTurn(2, false);
  expect(due()).toEqual([a, b, c]);
});

test.each([
  ['what the turn has left', true, [2, 2]],
  ['as many entries as a turn if that had no bound', false, [5, 7]],
])('what is inserted between two turns moves %s', (_, isBounded, sizes) => {
  const { wheels, place } = makeWheels(1, 4, 0);
  wheels.movesPerTurn = 2;
  for (let i = 0; i < 5; i++) place(1, 0);
  wheels.startTurn(1, isBounded);
  const afterTurn = wheels.due.size;
  for (let i = 0; i < 5; i++) place(1, 1);
  wheels.catchUp(2);
  expect([afterTurn, wheels.due.size]).toEqual(sizes);
});

test('expireAll moves every entry, whatever is left of the moves of a turn', () => {
  const { wheels, place, due } = makeWheels(1, 4, 0);
  wheels.movesPerTurn = 1;
  const slots = [2, 2, 100].map((delayMs) => place(delayMs, 0));
  wheels.startTurn(2, true);
  wheels.expireAll();
  expect(due()).toEqual(slots);
});

test('a span with more entries than a turn may move is not moved at once, and loses none of its finer buckets', () => {
  const { wheels, place, due } = makeWheels(1, 4, 0);
  const [c, a] = [place(7, 0), place(5, 0)];
  const b = place(3, 3);
  wheels.movesPerTurn = 2;
  wheels.startTurn(50, true);
  expect(wheels.due.size).toBeLessThanOrEqual(2);
  for (let turn = 0; turn < 3; turn++) wheels.startTurn(50, true);
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

test('place adds a due entry to the due queue, and any other to a bucket', () => {
  const { wheels, place, due } = makeWheels(10, 4, 1_000, 'down');
  const slots = [9, 0, -5, 10].map((delayMs) => place(delayMs, 1_000));
  expect([wheels.due.size, wheels.earliest()]).toEqual([3, wheels.due.list]);
  expect(due()).toEqual(slots.slice(0, 3));
  expect(wheels.earliest()?.expirationMs).toBe(1_010);
});

test('catchUp moves what fell due in order of expiration', () => {
  const { wheels, place, due } = makeWheels(1, 4, 0);
  const [c, a, b, d] = [60, 3, 17, 100].map((delayMs) => place(delayMs, 0));
  expect([wheels.catchUp(0.9), wheels.catchUp(2)]).toEqual([false, false]);
  expect(wheels.catchUp(70)).toBe(true);
  expect(due()).toEqual([a, b, c]);
  expect([wheels.first.currentTimeMs, wheels.first.overflowWheel?.currentTimeMs]).toEqual([70, 68]);
  expect(wheels.table.size).toBe(4);
  wheels.catchUp(100);
  expect(due()).toEqual([d]);
});

test('a coarse bucket that only moves to a finer wheel counts as fallen due', () => {
  const { wheels, place } = makeWheels(1, 4, 0);
  place(6, 0);
  expect([wheels.catchUp(4), wheels.due.size]).toEqual([true, 0]);
  expect(wheels.earliest()).toMatchObject({ expirationMs: 6, tickMs: 1 });
});

test('expireAll empties every bucket in order', () => {
  const { wheels, place, due } = makeWheels(1, 4, 0);
  const delays = [1e15, 5, 3, 70, 5];
  const slots = delays.map((delayMs) => place(delayMs, 0));
  wheels.movesPerTurn = 1;
  wheels.expireAll();
  expect(due()).toEqual([slots[2], slots[1], slots[4], slots[3], slots[0]]);
  wheels.expireAll();
  expect(wheels.earliest()).toBeUndefined();
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

test('late wheels leave what is not due, and advance to the time of the clock', () => {
  const wheels = new TimerWheels(1, 4, 0, 'up');
  const slots = Array.from({ length: 60 }, (_, i) => {
    const slot = wheels.table.allocate(callback, undefined);
    wheels.place(slot, 60 - i, 0);
    return slot;
  });
  expect(wheels.catchUp(41)).toBe(true);
  expect(slotsOf(wheels.table, wheels.due.list)).toEqual(slots.slice(19).reverse());
  expect([wheels.first.currentTimeMs, wheels.first.overflowWheel?.currentTimeMs]).toEqual([41, 40]);
  expect(wheels.due.list.expirationMs).toBe(1);
  expect(wheels.delayQueue.peek()?.expirationMs).toBe(42);
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
        ...{ tickMs: 1, wheelSize: 4, intervalMs: 4, currentTimeMs: 9 },
        buckets: [
          { index: 0, expirationMs: 12, size: 1 },
          { index: 3, expirationMs: 11, size: 2 },
        ],
      },
      {
        ...{ tickMs: 4, wheelSize: 4, intervalMs: 16, currentTimeMs: 8 },
        buckets: [{ index: 3, expirationMs: 12, size: 1 }],
      },
      {
        ...{ tickMs: 16, wheelSize: 4, intervalMs: 64, currentTimeMs: 0 },
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
