import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { isWorthSorting, sortSpan } from '../../src/timer/timer-wheels.ts';
import { TimerTable } from '../../src/timer/timer-table.ts';
import { TimerTaskList } from '../../src/timer/timer-task-list.ts';
import { TimerWheels } from '../../src/timer/timer-wheels.ts';

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

describe('sortSpan', () => {
  test('empties its buckets, in order of expiration, then of bucket, then of arrival', () => {
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
        const sorted = sortSpan(lists, startMs * tickMs, tickMs, ticks, table);
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
  ])('is for dense spans: %s', (_, ticks, entries, isWorthIt) => {
    expect(isWorthSorting(ticks, entries)).toBe(isWorthIt);
  });
});

describe('wheels that are overdue by whole spans', () => {
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

  test('run in the order in which they would have fallen due one by one', () => {
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

  test('leave what is not due, and stand where the clock is', () => {
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
});

function slotsOf(table: TimerTable, list: TimerTaskList): number[] {
  const slots: number[] = [];
  for (let slot = list.first; slot !== list.sentinel; slot = table.next(slot)) slots.push(slot);
  return slots;
}
