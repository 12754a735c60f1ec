import { RedisBroker } from 'escapement/tasks/redis';
import { Cluster } from 'ioredis';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { LONG_MS, newTask } from '../../../conformance/broker/support.ts';
import { RedisCluster } from '../../../redis/redis-cluster.ts';
import { RedisSentinels } from '../../../redis/redis-sentinels.ts';
import { until } from '../../../until.ts';
import {
  closeAll,
  count,
  countUntilItWorks,
  expectOutages,
  open,
  timeOf,
  UNAVAILABLE,
  unavailableFor,
  untilReady,
} from './connection-support.ts';

describe('a connection by sentinels', () => {
  const PASSWORDS = { server: 'ofServers', sentinel: 'of-sentinels' };

  let redis: RedisSentinels;

  beforeEach(async () => {
    redis = await RedisSentinels.start(PASSWORDS);
  });
  afterEach(async () => {
    await closeAll();
    await redis.stop();
  });

  async function portOf(connection: ReturnType<typeof open>['connection']): Promise<number> {
    const info = await connection.run((client) => client.info('server'));
    return Number(/tcp_port:(\d+)/.exec(info)?.[1]);
  }

  it('a connection by sentinels leads to the primary, and to the next one after a failover', async () => {
    const { connection, health } = open({ url: redis.url, password: PASSWORDS.server });
    const before = await redis.primary();
    expect(await portOf(connection)).toBe(before.port);
    expect(await count(connection)).toBe(1);
    const heard: string[] = [];
    await connection.channels.subscribe('a', (message) => heard.push(message.toString()));

    await redis.failover();
    const after = await redis.primary();
    expect(after).not.toBe(before);
    // The first one ends its connections when it hears that it is none any more.
    await until('it has gone over', async () => (await portOf(connection)) === after.port);
    expect(Number(await count(connection))).toBeGreaterThan(1);
    expect(health.at(-1)).toEqual({ state: 'ready' });
    await until('it is heard again', async () => {
      await connection.run((client) => client.publish('a', 'A'));
      return heard.includes('A');
    });
  });

  it('a connection by sentinels leads to the next primary when the first one stops answering', async () => {
    const { connection } = open({ url: redis.url, password: PASSWORDS.server, timeoutMs: 500 });
    const before = await redis.primary();
    await untilReady(connection);
    before.pause();
    await redis.untilReplaced(before);
    const { port } = await redis.primary();
    await until('it leads there', async () => (await portOf(connection)) === port);
    before.resume();
  });

  it('one sentinel that answers is enough', async () => {
    const [first, second, third] = redis.sentinels;
    first?.pause();
    await second?.kill();
    const { connection } = open({ url: redis.url, password: PASSWORDS.server, timeoutMs: 1_000 });
    await countUntilItWorks(connection);

    await third?.kill();
    first?.resume();
    await first?.kill();
    const other = open({ url: redis.url, password: PASSWORDS.server, timeoutMs: 2_000 });
    await expect(count(other.connection)).rejects.toMatchObject(
      unavailableFor(/All sentinels are unreachable/),
    );
    expect(await timeOf(other.connection.close())).toBeLessThan(5_000);
    // A connection that exists does not need them.
    await count(connection);
  });

  it('sentinels do not receive the password of the servers, nor the servers that of the sentinels', async () => {
    const { connection } = open({ url: redis.url, timeoutMs: 2_000 });
    await expect(count(connection)).rejects.toMatchObject(unavailableFor(/NOAUTH|Authentication required/));
  });
});

describe('a cluster', () => {
  /** A queue on each node: the first, the second and the third part of all slots. */
  const QUEUES = ['q0', 'q1', 'q2'] as const;

  let redis: RedisCluster;

  beforeAll(async () => {
    redis = await RedisCluster.start();
  });
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
      await connection.channels.subscribe('a', (message) => heard.push(message.toString()));
      for (const [index, node] of redis.nodes.entries()) await node.ask(`PUBLISH a ${index}`);
      await until('all is heard', () => heard.length === redis.nodes.length);
      expect(heard.sort()).toEqual(['0', '1', '2']);
    });

    it('a listener is subscribed at another node when its node is lost', async () => {
      const { connection } = open({ url: redis.url });
      await count(connection);
      const heard: string[] = [];
      await connection.channels.subscribe('a', (message) => heard.push(message.toString()));
      for (const node of redis.nodes) await node.ask('CLIENT KILL TYPE pubsub');
      await until('it is heard again', async () => {
        await redis.nodes[0]?.ask('PUBLISH a A');
        return heard.includes('A');
      });
    });

    it('a client of a cluster that was passed in is used and not closed', async () => {
      const client = new Cluster(redis.nodes.map(({ port }) => ({ host: '127.0.0.1', port })));
      onTestFinished(() => {
        client.disconnect();
      });
      const { connection } = open({ client });
      await connection.channels.subscribe('a', () => undefined);
      for (const queue of QUEUES) expect(await count(connection, queue)).toBe(1);
      await connection.close();
      expect(await client.get('asynq:{q1}:count')).toBe('1');
    });

    it('a connection to a cluster is closed promptly', async () => {
      const { connection } = open({ url: redis.url });
      expect(await timeOf(connection.close())).toBeLessThan(5_000);
      const ready = open({ url: redis.url });
      await count(ready.connection);
      expect(await timeOf(ready.connection.close())).toBeLessThan(5_000);
    });
  });

  it('a lost node makes only its queues unavailable, until it is back', async () => {
    const { connection } = open({ url: redis.url, timeoutMs: 2_000 });
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
    for (const queue of QUEUES) await untilReady(connection, queue);
    const [first] = redis.nodes;
    first?.pause();
    try {
      for (let asked = 0; asked < 10; asked++) {
        await expect(count(connection, QUEUES[0])).rejects.toMatchObject(UNAVAILABLE);
      }
      expect(await timeOf(connection.close())).toBeLessThan(5_000);
    } finally {
      first?.resume();
    }
    const later = open({ url: redis.url }).connection;
    await countUntilItWorks(later, QUEUES[0]);
    expect(await count(later, QUEUES[0])).toBeLessThanOrEqual(7);
  });

  it('while the slot of a queue moves to another node, its tasks are unavailable, and all of them are there afterwards', async () => {
    const broker = new RedisBroker({ url: redis.url });
    onTestFinished(() => broker.close());
    const queue = 'moved';
    const ids = ['a', 'b', 'c', 'd'];
    const tasks = ids.map((id) => newTask({ queue, id }));
    await broker.enqueueMany(tasks);
    await redis.moveSlotOf(`asynq:{${queue}}:pending`, async () => {
      for (const outcome of await broker.enqueueMany([...tasks, newTask({ queue })]))
        expect(outcome).toMatchObject({ reason: UNAVAILABLE });
      await expect(broker.dequeue(queue, 1, LONG_MS)).rejects.toMatchObject(UNAVAILABLE);
    });
    const taken = await broker.dequeue(queue, 10, LONG_MS);
    expect(taken.map(({ message }) => message.id)).toEqual(ids);
  });

  it('operations wait for a cluster whose nodes are all lost', async () => {
    const { connection, health } = open({ url: redis.url, timeoutMs: 2_000 });
    await count(connection);
    await Promise.all(redis.nodes.map((node) => node.kill()));
    await expect(count(connection)).rejects.toMatchObject(UNAVAILABLE);
    await until('it is told', () => health.at(-1)?.state === 'unavailable');
    await Promise.all(redis.nodes.map((node) => node.start()));
    await countUntilItWorks(connection);
    expectOutages(health);
  });
});
