import { expect, test } from 'vitest';
import { SeededRandom } from '../../../bench/lib/random.ts';
import {
  equalLoads,
  imbalance,
  imbalanceOf,
  numbered,
  partsByKey,
  randomName,
  shardOfSlot,
  shardShares,
  slotOfQueue,
  spread,
  zipfLoads,
} from '../../../bench/scaling/placement.ts';

const sumOf = (shares: Iterable<number>): number => [...shares].reduce((sum, share) => sum + share, 0);

test('the imbalance is the largest share as a multiple of an equal share', () => {
  expect(imbalanceOf(Float64Array.of(1, 1, 1))).toBe(1);
  expect(imbalanceOf(Float64Array.of(3, 1, 0, 0))).toBe(3);
  expect(imbalanceOf(Float64Array.of(0, 0.5))).toBe(2);
});

test('the whole load of a queue is on the shard of its slot', () => {
  const loads = [
    { queue: 'a', share: 0.75 },
    { queue: 'b', share: 0.25 },
  ];
  const shares = shardShares(loads, 4);
  expect(sumOf(shares)).toBe(1);
  expect(shares[shardOfSlot(slotOfQueue('a'), 4)]).toBeGreaterThanOrEqual(0.75);
  expect(imbalance(loads, 1)).toBe(1);
});

test('shares by Zipf fall as 1, 1/2, 1/3', () => {
  const loads = zipfLoads(3, 1, new SeededRandom(1)).map(({ share }) => share);
  expect(sumOf(loads)).toBeCloseTo(1);
  expect(loads.map((share) => share / (loads[0] as number))).toEqual([1, 0.5, expect.closeTo(1 / 3)]);
  expect(equalLoads(4, new SeededRandom(1)).map(({ share }) => share)).toEqual([0.25, 0.25, 0.25, 0.25]);
});

test('four parts with numbers at the end of any name are on four shards', () => {
  const random = new SeededRandom(7);
  for (let i = 0; i < 200; i++) {
    const queue = { queue: randomName(random), share: 1 };
    expect(imbalance(numbered(queue, 4), 4)).toBe(1);
    expect(imbalance(numbered(queue, 8), 4)).toBe(1);
    expect(imbalance(numbered(queue, 8), 8)).toBeGreaterThan(1);
  }
});

test('parts with chosen names are even on every number of shards that divides the number of parts', () => {
  const parts = spread({ queue: 'orders', share: 1 }, 16);
  expect(new Set(parts.map(({ queue }) => queue)).size).toBe(16);
  for (const shards of [2, 4, 8, 16]) expect(imbalance(parts, shards)).toBe(1);
});

test('all tasks of a key are in one part', () => {
  const keys = zipfLoads(50, 1, new SeededRandom(3));
  const shares = partsByKey(keys, 8);
  expect(sumOf(shares)).toBeCloseTo(1);
  expect(Math.max(...shares)).toBeGreaterThanOrEqual(keys[0]?.share as number);
});
