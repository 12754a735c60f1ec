import { afterAll, beforeAll, describe } from 'vitest';
import { describeBroker } from '../../../conformance/broker/describe-broker.ts';
import { RedisCluster } from '../../../redis/redis-cluster.ts';
import { clusterSetup } from './setup.ts';

describe('the broker on a cluster of Redis', () => {
  let cluster: RedisCluster;

  beforeAll(async () => {
    cluster = await RedisCluster.start();
  });
  afterAll(() => cluster.stop());

  describeBroker(() => clusterSetup(cluster));
});
