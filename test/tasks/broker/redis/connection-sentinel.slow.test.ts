import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { RedisSentinels } from '../../../redis/redis-sentinels.ts';
import { until } from '../../../redis/until.ts';
import { closeAll, count, countUntilItWorks, open, timeOf, unavailableFor } from './connection-support.ts';

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

describe('a connection by sentinels', () => {
  it('a connection by sentinels leads to the primary, and to the next one after a failover', async () => {
    const { connection, health } = open({ url: redis.url, password: PASSWORDS.server });
    const before = await redis.primary();
    expect(await portOf(connection)).toBe(before.port);
    expect(await count(connection)).toBe(1);
    const heard: string[] = [];
    await connection.subscribe('a', (message) => heard.push(message.toString()));

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
