import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { RedisCluster } from './redis-cluster.ts';
import { RedisSentinels } from './redis-sentinels.ts';
import { withRedis } from './with-redis.ts';

describe('sentinels of our own', () => {
  let redis: RedisSentinels;

  beforeAll(async () => {
    redis = await RedisSentinels.start();
  }, 30_000);
  afterAll(() => redis.stop());

  it('make the replica the primary when they are asked to', async () => {
    const before = await redis.primary();
    await redis.failover();
    expect(await redis.primary()).not.toBe(before);
  });
});

describe('a cluster of our own', () => {
  let redis: RedisCluster;

  beforeAll(async () => {
    redis = await RedisCluster.start();
  }, 30_000);
  afterAll(() => redis.stop());

  it('has each slot on one node', async () => {
    const answers = await Promise.allSettled(
      redis.nodes.map(({ url }) => withRedis(url, (node) => node.set('key', 'value'))),
    );
    expect(answers.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
  });
});
