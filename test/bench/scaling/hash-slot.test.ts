import { afterAll, beforeAll, expect, test } from 'vitest';
import { SeededRandom } from '../../../bench/lib/random.ts';
import {
  crc16,
  equalLoads,
  imbalanceOf,
  shardOfSlot,
  slotOfKey,
  slotOfQueue,
  SLOTS,
  zipfLoads,
} from '../../../bench/scaling/placement.ts';
import { RedisProcess } from '../../redis/redis-process.ts';

let cluster: RedisProcess;

beforeAll(async () => {
  cluster = await RedisProcess.start({ isClusterNode: true });
});

afterAll(async () => {
  await cluster.stop();
});

async function fetchSlots(keys: readonly string[]): Promise<number[]> {
  const replies = await cluster.ask(...keys.map((key) => `CLUSTER KEYSLOT ${key}`));
  return replies.map((reply) => Number(reply.slice(1)));
}

test('CRC-16 is that of the specification', () => expect(crc16('123456789')).toBe(0x31_c3));

test('the slot of a key is the one that Redis computes', async () => {
  const keys = [
    ...['a', 'foo', 'orders:0', 'orders:17', 'schlüssel', '任务'],
    ...['{user}.a', 'b{user}', '{}a', '{a', 'a}b{c}', '{{a}}', '{a}{b}', 'a{}{b}'],
    ...Array.from({ length: 200 }, (_, i) => `queue-${i * 7919}`),
  ];
  expect(keys.map(slotOfKey)).toEqual(await fetchSlots(keys));
});

test('all keys of a queue are in the slot of its name', () => {
  expect(slotOfQueue('orders:3')).toBe(slotOfKey('orders:3'));
  expect(slotOfKey('asynq:{orders:3}:t:some-id')).toBe(slotOfQueue('orders:3'));
});

test('shards have equal ranges of slots', () => {
  for (const shards of [1, 2, 3, 6, 16]) {
    const counts = new Map<number, number>();
    for (let slot = 0; slot < SLOTS; slot++) {
      const shard = shardOfSlot(slot, shards);
      counts.set(shard, (counts.get(shard) ?? 0) + 1);
    }
    expect([...counts.keys()]).toEqual(Array.from({ length: shards }, (_, shard) => shard));
    expect(Math.max(...counts.values()) - Math.min(...counts.values())).toBeLessThanOrEqual(1);
  }
});

test('the imbalance is the largest share as a multiple of an equal share', () => {
  expect(imbalanceOf(Float64Array.of(1, 1, 1))).toBe(1);
  expect(imbalanceOf(Float64Array.of(3, 1, 0, 0))).toBe(3);
  expect(imbalanceOf(Float64Array.of(0, 0.5))).toBe(2);
});

test('shares by Zipf fall as 1, 1/2, 1/3', () => {
  const loads = zipfLoads(3, 1, new SeededRandom(1)).map(({ share }) => share);
  expect(loads.reduce((sum, share) => sum + share, 0)).toBeCloseTo(1);
  expect(loads.map((share) => share / (loads[0] as number))).toEqual([1, 0.5, expect.closeTo(1 / 3)]);
  expect(equalLoads(4, new SeededRandom(1)).map(({ share }) => share)).toEqual([0.25, 0.25, 0.25, 0.25]);
});
