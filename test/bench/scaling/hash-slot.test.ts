import { afterAll, beforeAll, expect, test } from 'vitest';
import { crc16, shardOfSlot, slotOfKey, slotOfQueue, SLOTS } from '../../../bench/scaling/placement.ts';
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
