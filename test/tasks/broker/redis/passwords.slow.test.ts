import { inspect } from 'node:util';
import { Cluster, Redis } from 'ioredis';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { withoutPassword } from '../../../../src/tasks/broker/redis/redis-errors.ts';
import { RedisCluster } from '../../../redis/redis-cluster.ts';
import { RedisProcess } from '../../../redis/redis-process.ts';
import { RedisSentinels } from '../../../redis/redis-sentinels.ts';
import { until } from '../../../until.ts';
import { closeAll, count, open, type Opened } from './connection-support.ts';

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
    await until('it is unavailable', () => health.some(({ state }) => state === 'unavailable'));
    return [rejected, unheard, health, connection.health, connection];
  }

  /** On a busy machine Redis may refuse the password after the time limit of the first operations. */
  async function expectNoSecret(opened: Opened, told: RegExp): Promise<void> {
    const said: unknown[] = [];
    await until(`an error has ${told}`, async () => {
      said.unshift(...(await saidBy(opened)));
      return told.test(logged(said[0]));
    });
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
