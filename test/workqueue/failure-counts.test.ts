import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { FailureCounts } from '../../src/workqueue/failure-counts.ts';

const upTo = (count: number): number[] => Array.from({ length: count }, (_, i) => i);
const remembered = (counts: FailureCounts<number>, items: number): number =>
  upTo(items).filter((item) => counts.get(item) > 0).length;

describe('failure counts', () => {
  test('count, and forget', () => {
    const counts = new FailureCounts<unknown>(Infinity);
    for (const item of ['a', NaN, undefined, {}]) {
      expect([counts.get(item), counts.increment(item), counts.increment(item), counts.get(item)]).toEqual([
        0, 0, 1, 2,
      ]);
      counts.forget(item);
      expect([counts.get(item), counts.increment(item)]).toEqual([0, 0]);
    }
  });

  test.each([2, 3, 10, 101])('never remember more than %d items', (maxItems) => {
    const counts = new FailureCounts<number>(maxItems);
    for (const item of upTo(500)) {
      counts.increment(item);
      if (item % 7 === 0) counts.increment(item >> 1);
      expect(remembered(counts, 500)).toBeLessThanOrEqual(maxItems);
    }
  });

  test.each([2, 3, 10, 101])('of %d, the half that failed last is remembered', (maxItems) => {
    const half = Math.floor(maxItems / 2);
    const counts = new FailureCounts<number>(maxItems);
    for (const item of upTo(500)) {
      counts.increment(item);
      for (const last of upTo(Math.min(half, item))) expect(counts.get(item - last)).toBe(1);
    }
  });

  test('an item that goes on failing keeps its count, whatever else fails once', () => {
    const counts = new FailureCounts<number>(10);
    for (let failures = 0; failures < 100; failures++) {
      expect(counts.increment(-1)).toBe(failures);
      for (let other = 0; other < 5; other++) counts.increment(failures * 5 + other);
    }
  });

  test.each([2, 3, 10])('half of %d items and one, in turn, all keep their counts', (maxItems) => {
    const counts = new FailureCounts<number>(maxItems);
    const items = upTo(Math.floor(maxItems / 2) + 1);
    for (let round = 0; round < 20; round++) {
      for (const item of items) expect(counts.increment(item)).toBe(round);
    }
  });

  test('what is forgotten makes room, and does not come back', () => {
    const counts = new FailureCounts<number>(4);
    for (const item of upTo(4)) {
      counts.increment(item);
      counts.forget(item);
    }
    expect(remembered(counts, 4)).toBe(0);
  });

  test('an item is forgotten wherever its count is', () => {
    for (let others = 0; others < 5; others++) {
      const counts = new FailureCounts<number>(10);
      for (const item of upTo(5 + others)) counts.increment(item);
      for (const item of upTo(5 + others)) {
        counts.forget(item);
        expect(counts.get(item)).toBe(0);
      }
    }
  });

  test('unbounded, they are a map', () => {
    const operation = fc.tuple(fc.constantFrom('increment' as const, 'forget' as const), fc.nat({ max: 5 }));
    fc.assert(
      fc.property(fc.array(operation), (operations) => {
        const [counts, model] = [new FailureCounts<number>(Infinity), new Map<number, number>()];
        for (const [what, item] of operations) {
          if (what === 'forget') model.delete(item);
          else model.set(item, (model.get(item) ?? 0) + 1);
          counts[what](item);
          expect(counts.get(item)).toBe(model.get(item) ?? 0);
        }
      }),
    );
  });
});
