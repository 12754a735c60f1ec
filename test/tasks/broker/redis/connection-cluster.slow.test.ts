import { Cluster } from 'ioredis';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { RedisCluster } from '../../../redis/redis-cluster.ts';
import { until } from '../../../redis/until.ts';
import { closeAll, count, countUntilItWorks, open, timeOf, UNAVAILABLE } from './connection-support.ts';

/** A queue on each node: the first, the second and the third part of all slots. */
const QUEUES = ['q0', 'q1', 'q2'] as const;

let redis: RedisCluster;

beforeAll(async () => {
  redis = await RedisCluster.start();
}, 30_000);
afterAll(() => redis.stop());
afterEach(async () => {
  await closeAll();
  await Promise.all(redis.nodes.map((node) => node.ask('FLUSHALL')));
});

describe('a connection to a cluster', () => {
  it('scripts run on the cluster node of their queue', async () => {
    const { connection, health } = open({ url: redis.url });
    for (const queue of QUEUES) expect(await count(connection, queue)).toBe(1);
    const sizes = await Promise.all(redis.nodes.map((node) => node.ask('DBSIZE')));
    expect(sizes).toEqual([[':1'], [':1'], [':1']]);
    expect(connection.isCluster).toBe(true);
    expect(health).toEqual([{ state: 'ready' }]);
  });

  it('the URL of one node is enough to find all nodes of a cluster', async () => {
    const [first] = redis.nodes;
    const { connection } = open({ url: `redis-cluster://127.0.0.1:1,127.0.0.1:${first?.port ?? 0}` });
    for (const queue of QUEUES) expect(await count(connection, queue)).toBe(1);
  });

  it('a listener receives messages that are published at any node', async () => {
    const { connection } = open({ url: redis.url });
    await count(connection);
    const heard: string[] = [];
    await connection.subscribe('a', (message) => heard.push(message.toString()));
    for (const [index, node] of redis.nodes.entries()) await node.ask(`PUBLISH a ${index}`);
    await until('all is heard', () => Promise.resolve(heard.length === redis.nodes.length));
    expect(heard.sort()).toEqual(['0', '1', '2']);
  });

  it('a listener is subscribed at another node when its node is lost', async () => {
    const { connection } = open({ url: redis.url });
    await count(connection);
    const heard: string[] = [];
    await connection.subscribe('a', (message) => heard.push(message.toString()));
    for (const node of redis.nodes) await node.ask('CLIENT KILL TYPE pubsub');
    await until('it is heard again', async () => {
      await redis.nodes[0]?.ask('PUBLISH a A');
      return heard.includes('A');
    });
  });

  it('a client of a cluster that was passed in is used and not closed', async () => {
    const client = new Cluster(redis.nodes.map(({ port }) => ({ host: '127.0.0.1', port })));
    try {
      const { connection } = open({ client });
      await connection.subscribe('a', () => undefined);
      for (const queue of QUEUES) expect(await count(connection, queue)).toBe(1);
      await connection.close();
      expect(await client.get('asynq:{q1}:count')).toBe('1');
    } finally {
      client.disconnect();
    }
  });

  it('a connection to a cluster is closed promptly', async () => {
    const { connection } = open({ url: redis.url });
    expect(await timeOf(connection.close())).toBeLessThan(500);
    const ready = open({ url: redis.url });
    await count(ready.connection);
    expect(await timeOf(ready.connection.close())).toBeLessThan(500);
  });
});

describe('a cluster node that is lost', () => {
  it('a lost node makes only its queues unavailable, until it is back', async () => {
    const { connection } = open({ url: redis.url, timeoutMs: 1_000 });
    for (const queue of QUEUES) await count(connection, queue);
    const [first] = redis.nodes;
    await first?.kill();
    await expect(count(connection, QUEUES[0])).rejects.toMatchObject(UNAVAILABLE);
    expect(await count(connection, QUEUES[1])).toBe(2);
    expect(await count(connection, QUEUES[2])).toBe(2);
    await first?.start();
    await countUntilItWorks(connection, QUEUES[0]);
  });

  it('a node that does not answer gets few commands', async () => {
    const { connection } = open({ url: redis.url, timeoutMs: 200 });
    for (const queue of QUEUES) await count(connection, queue);
    const [first] = redis.nodes;
    first?.pause();
    try {
      for (let asked = 0; asked < 10; asked++) {
        await expect(count(connection, QUEUES[0])).rejects.toMatchObject(UNAVAILABLE);
      }
      expect(await timeOf(connection.close())).toBeLessThan(500);
    } finally {
      first?.resume();
    }
    const later = open({ url: redis.url }).connection;
    await countUntilItWorks(later, QUEUES[0]);
    expect(await count(later, QUEUES[0])).toBeLessThanOrEqual(8);
  });

  it('operations wait for a cluster whose nodes are all lost', async () => {
    const { connection, health } = open({ url: redis.url, timeoutMs: 500 });
    await count(connection);
    await Promise.all(redis.nodes.map((node) => node.kill()));
    await expect(count(connection)).rejects.toMatchObject(UNAVAILABLE);
    await until('it is told', () => Promise.resolve(health.at(-1)?.state === 'unavailable'));
    await Promise.all(redis.nodes.map((node) => node.start()));
    await countUntilItWorks(connection);
    expect(health.map(({ state }) => state)).toEqual(['ready', 'unavailable', 'ready']);
  });
});
