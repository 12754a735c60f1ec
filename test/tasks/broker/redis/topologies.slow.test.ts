import { inspect } from 'node:util';
import { Client, Task } from 'escapement/tasks';
import { tasksHandler } from 'escapement/tasks/http';
import { RedisBroker } from 'escapement/tasks/redis';
import { Cluster, Redis } from 'ioredis';
import {
  afterAll,
  afterEach,
  beforeAll,
  beforeEach,
  describe,
  expect,
  it,
  onTestFinished,
  test,
} from 'vitest';
import { withoutPassword } from '../../../../src/tasks/broker/redis/redis-errors.ts';
import { RedisCluster } from '../../../redis/redis-cluster.ts';
import { RedisProcess } from '../../../redis/redis-process.ts';
import { RedisSentinels } from '../../../redis/redis-sentinels.ts';
import { until } from '../../../redis/until.ts';
import { serve } from '../../http/serve.ts';
import {
  closeAll,
  count,
  countUntilItWorks,
  open,
  type Opened,
  timeOf,
  UNAVAILABLE,
  unavailableFor,
} from './connection-support.ts';

describe('a connection by sentinels', () => {
  const PASSWORDS = { server: 'ofServers', sentinel: 'of-sentinels' };

  let redis: RedisSentinels;

  beforeEach(async () => {
    redis = await RedisSentinels.start(PASSWORDS);
  }, 30_000);
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

  it('a connection by sentinels leads to the next primary when the first one dies', async () => {
    const { connection, health } = open({ url: redis.url, password: PASSWORDS.server });
    const before = await redis.primary();
    await connection.run((client) => client.set('key', 'value'));
    // Nothing is lost that the replica has.
    await connection.run((client) => client.call('WAIT', '1', '5000'));
    await before.kill();
    await redis.untilPrimaryIsNot(before);
    await countUntilItWorks(connection);
    expect(await portOf(connection)).toBe((await redis.primary()).port);
    expect(await connection.run((client) => client.get('key'))).toBe('value');
    expect(health.map(({ state }) => state)).toEqual(['ready', 'unavailable', 'ready']);
  });

  it('a connection by sentinels leads to the next primary when the first one stops answering', async () => {
    const { connection } = open({ url: redis.url, password: PASSWORDS.server, timeoutMs: 500 });
    const before = await redis.primary();
    await count(connection);
    before.pause();
    await redis.untilPrimaryIsNot(before);
    await countUntilItWorks(connection);
    expect(await portOf(connection)).toBe((await redis.primary()).port);
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
    const other = open({ url: redis.url, password: PASSWORDS.server, timeoutMs: 300 });
    await expect(count(other.connection)).rejects.toMatchObject(
      unavailableFor(/All sentinels are unreachable/),
    );
    expect(await timeOf(other.connection.close())).toBeLessThan(500);
    // A connection that exists does not need them.
    await count(connection);
  });

  it('sentinels do not receive the password of the servers, nor the servers that of the sentinels', async () => {
    const { connection } = open({ url: redis.url, timeoutMs: 500 });
    await expect(count(connection)).rejects.toMatchObject(unavailableFor(/NOAUTH|Authentication required/));
  });
});

describe('a cluster', () => {
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
      await connection.channels.subscribe('a', (message) => heard.push(message.toString()));
      for (const [index, node] of redis.nodes.entries()) await node.ask(`PUBLISH a ${index}`);
      await until('all is heard', () => Promise.resolve(heard.length === redis.nodes.length));
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
      try {
        const { connection } = open({ client });
        await connection.channels.subscribe('a', () => undefined);
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
});

describe('redisInfo', () => {
  function open(url: string, password?: string): RedisBroker {
    const broker = new RedisBroker({ url, ...(password === undefined ? {} : { password }) });
    onTestFinished(() => broker.close());
    return broker;
  }

  test('redisInfo has the shape of asynqmon, and no password', async () => {
    const redis = await RedisProcess.start({ args: ['--requirepass', 'secret'] });
    onTestFinished(() => redis.stop());
    const broker = open(`redis://:secret@127.0.0.1:${redis.port}/3`);
    const { info, raw_info: rawInfo, ...rest } = await broker.redisInfo();
    expect(rest).toEqual({ address: `127.0.0.1:${redis.port}`, cluster: false });
    expect(rawInfo).toContain(`tcp_port:${redis.port}\r\n`);
    expect(info).toMatchObject({ tcp_port: String(redis.port), redis_mode: 'standalone' });
    expect(JSON.stringify([info, rawInfo])).not.toContain('secret');

    const send = await serve(tasksHandler({ broker, redisInfo: () => broker.redisInfo() }));
    const { status, json } = await send('/api/redis_info');
    expect(status).toBe(200);
    expect(json).toMatchObject({ ...rest, raw_cluster_nodes: '', queue_locations: null });
    expect(json).toMatchObject({ info: { redis_version: info['redis_version'] } });
  });

  test('redisInfo of a cluster has the nodes of its queues', async () => {
    const redis = await RedisCluster.start();
    onTestFinished(() => redis.stop());
    const broker = open(redis.url);
    const client = new Client({ broker });
    for (const queue of ['q0', 'q1', 'q2']) await client.enqueue(new Task('a', 1, { queue }));
    const info = await broker.redisInfo();
    const addresses = redis.nodes.map(({ port }) => `127.0.0.1:${port}`);
    expect(info.address.split(',').sort()).toEqual([...addresses].sort());
    expect(info.cluster).toBe(true);
    expect(info.info).toMatchObject({ cluster_state: 'ok', cluster_size: '3' });
    expect(info.raw_info).toContain('cluster_state:ok\r\n');
    for (const address of addresses) expect(info.raw_cluster_nodes).toContain(address);
    const locations = [...(info.queue_locations ?? [])].sort((a, b) => a.queue.localeCompare(b.queue));
    expect(locations).toEqual([
      { queue: 'q0', keyslot: await slotOf(redis, 'q0'), nodes: [addresses[0]] },
      { queue: 'q1', keyslot: await slotOf(redis, 'q1'), nodes: [addresses[1]] },
      { queue: 'q2', keyslot: await slotOf(redis, 'q2'), nodes: [addresses[2]] },
    ]);
  }, 30_000);

  test('the address in redisInfo is that of the primary if there are sentinels', async () => {
    const passwords = { server: 'of-servers', sentinel: 'of-sentinels' };
    const redis = await RedisSentinels.start(passwords);
    onTestFinished(() => redis.stop());
    const { address } = await open(redis.url, passwords.server).redisInfo();
    expect(address).toBe(`127.0.0.1:${(await redis.primary()).port}`);
  }, 30_000);

  async function slotOf(redis: RedisCluster, queue: string): Promise<number> {
    const [reply = ''] = (await redis.nodes[0]?.ask(`CLUSTER KEYSLOT {${queue}}`)) ?? [];
    return Number(reply.replace(':', ''));
  }
});

describe('passwords', () => {
  const SECRET = 'hunter2-hunter2';

  let server: RedisProcess;

  beforeAll(async () => {
    server = await RedisProcess.start({ args: ['--requirepass', 'another'] });
  });
  afterAll(() => server.stop());
  afterEach(closeAll);

  /** Everything that a program could log of a value. */
  function logged(value: unknown): string {
    const seen = new Set<unknown>();
    const plain = JSON.stringify(value, (_, each: unknown) => {
      if (!(each instanceof Error)) return each;
      if (seen.has(each)) return 'seen';
      seen.add(each);
      return Object.getOwnPropertyDescriptors(each);
    });
    return [inspect(value, { depth: Infinity, showHidden: true }), plain, String(value)].join('\n');
  }

  /** The errors of a connection that is refused: that of a caller, and that of `onHealth`. */
  async function saidBy({ connection, health }: Opened): Promise<unknown[]> {
    const rejected: unknown = await count(connection).catch((error: unknown) => error);
    const unheard: unknown = await connection.channels
      .subscribe('a', () => undefined)
      .catch((error: unknown) => error);
    await until('it is unavailable', () =>
      Promise.resolve(health.some(({ state }) => state === 'unavailable')),
    );
    return [rejected, unheard, health, connection.health, connection];
  }

  async function expectNoSecret(opened: Opened, told: RegExp): Promise<void> {
    const said = await saidBy(opened);
    expect(logged(said[0])).toMatch(told);
    for (const each of said) expect(logged(each)).not.toContain(SECRET);
  }

  describe('a password that Redis refuses is in no error', () => {
    it('no error of a connection by URL has its password', async () => {
      const url = `redis://:${SECRET}@127.0.0.1:${server.port}`;
      await expectNoSecret(open({ url, timeoutMs: 300 }), /WRONGPASS/);
    });

    it('no error of a connection with a user name has its password', async () => {
      const opened = open({ url: server.url, username: 'worker', password: SECRET, timeoutMs: 300 });
      await expectNoSecret(opened, /WRONGPASS/);
    });

    it('no error has the password if the server repeats an unknown command', async () => {
      const old = await RedisProcess.start({ args: ['--rename-command', 'AUTH', 'other'] });
      const url = `redis://worker:${SECRET}@127.0.0.1:${old.port}`;
      await expectNoSecret(open({ url, timeoutMs: 300 }), /unknown command/);
      await closeAll();
      await old.stop();
    });

    it.each([2, 3] as const)('no error of a client with protocol %i has its password', async (protocol) => {
      const client = new Redis({
        ...{ protocol, port: server.port, username: 'default', password: SECRET },
        ...{ maxRetriesPerRequest: 0, retryStrategy: () => 50 },
      });
      client.on('error', () => undefined);
      await expectNoSecret(open({ client, timeoutMs: 300 }), /WRONGPASS/);
      client.disconnect();
    });

    it('no error of a cluster has its password', async () => {
      const redis = await RedisCluster.start();
      for (const node of redis.nodes) await node.ask('CONFIG SET requirepass another');
      const hosts = redis.nodes.map(({ port }) => `127.0.0.1:${port}`).join();
      await expectNoSecret(open({ url: `redis-cluster://:${SECRET}@${hosts}`, timeoutMs: 500 }), /WRONGPASS/);
      const client = new Cluster(
        redis.nodes.map(({ port }) => ({ port, host: '127.0.0.1' })),
        { redisOptions: { password: SECRET } },
      );
      client.on('error', () => undefined);
      await expectNoSecret(open({ client, timeoutMs: 500 }), /WRONGPASS/);
      client.disconnect();
      await closeAll();
      await redis.stop();
    });

    it('no error of servers with sentinels has their passwords', async () => {
      const redis = await RedisSentinels.start({ server: 'ofServers', sentinel: 'ofSentinels' });
      await expectNoSecret(open({ url: redis.url, password: SECRET, timeoutMs: 500 }), /WRONGPASS/);
      const url = redis.url.replace('ofSentinels', SECRET);
      await expectNoSecret(open({ url, password: 'ofServers', timeoutMs: 500 }), /unavailable/);
      await closeAll();
      await redis.stop();
    });
  });

  describe('an error of the client', () => {
    const refusal = (name: string, args: readonly string[]): Error =>
      Object.assign(new Error('WRONGPASS'), { command: { name, args } });

    it('withoutPassword returns the same error without the password', () => {
      const error = refusal('auth', ['worker', SECRET]);
      expect(withoutPassword(error)).toBe(error);
      expect(error).toMatchObject({ message: 'WRONGPASS', command: { name: 'auth', args: [] } });
    });

    it('withoutPassword keeps the arguments of other commands', () => {
      expect(withoutPassword(refusal('get', ['a']))).toMatchObject({ command: { name: 'get', args: ['a'] } });
    });

    it('withoutPassword removes passwords from nested errors, also from circular ones', () => {
      const inner = refusal('HELLO', ['3', 'AUTH', 'worker', SECRET]);
      const middle = Object.assign(new Error('no node', { cause: inner }), {
        lastNodeError: refusal('auth', [SECRET]),
      });
      inner.cause = middle;
      const error = new AggregateError([refusal('auth', [SECRET]), middle], 'all have failed');
      expect(logged(withoutPassword(error))).not.toContain(SECRET);
    });
  });
});
