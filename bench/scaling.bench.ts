/** A simulation: queues over the shards of a cluster, and what a server does that serves many of them. */
import type { BenchPart } from './lib/part.ts';
import { placementCases } from './scaling/placement-cases.ts';
import { servingCase } from './scaling/serving-case.ts';

export const part: BenchPart = {
  title: 'simulated: queues over the shards of a Redis Cluster',
  remarks: [
    'All keys of a queue are in one slot, CRC16 of its name modulo 16 384, and so on one shard; shards have equal ranges of slots. ' +
      'Numbers are times the even share of a shard: 1 is perfect, and with N shards N is as if there were one Redis. Of a thousand ' +
      'clusters that differ in the names of their queues the median, and what one in ten exceeds (p90). The seed is fixed.',
  ],
  cases: [...placementCases, servingCase],
};
