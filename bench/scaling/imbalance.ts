import { shardOfSlot, slotOfQueue } from './hash-slot.ts';
import type { QueueLoad } from './loads.ts';

/** What each shard has of all tasks. */
export function shardShares(loads: readonly QueueLoad[], shards: number): Float64Array {
  const shares = new Float64Array(shards);
  for (const { queue, share } of loads) {
    const shard = shardOfSlot(slotOfQueue(queue), shards);
    shares[shard] = (shares[shard] as number) + share;
  }
  return shares;
}

/** How many times its even share the busiest one has: 1 is perfect. */
export function imbalanceOf(shares: Float64Array): number {
  const sum = shares.reduce((total, share) => total + share, 0);
  return (Math.max(...shares) * shares.length) / sum;
}

/** Of the shards: with N of them, N is no better than one Redis. */
export function imbalance(loads: readonly QueueLoad[], shards: number): number {
  return imbalanceOf(shardShares(loads, shards));
}
