import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { acceptConnections } from '../listen.ts';
import { LentDatabase } from './lent-database.ts';
import { freshDatabase } from './redis-case.ts';
import { RedisProcess } from './redis-process.ts';
import { withRedis } from './with-redis.ts';

const keysOf = (url: string): Promise<string[]> => withRedis(url, (redis) => redis.keys('*'));

it('a fresh database is empty, also after a test has written to it', async () => {
  for (let turn = 0; turn < 20; turn++) {
    const { url, dispose } = await freshDatabase();
    expect(await keysOf(url)).toEqual([]);
    await withRedis(url, (redis) => redis.set('asynq:queues', 'value'));
    await dispose();
  }
});

it.skipIf((process.env['REDIS_URL'] ?? '') !== '')('two tests have different databases', async () => {
  const [one, other] = await Promise.all([freshDatabase(), freshDatabase()]);
  await withRedis(one.url, (redis) => redis.set('asynq:queues', 'value'));
  expect(await keysOf(other.url)).toEqual([]);
  await Promise.all([one.dispose(), other.dispose()]);
});

describe('a database that is not ours', () => {
  let server: RedisProcess;

  beforeAll(async () => {
    server = await RedisProcess.start();
  });
  afterAll(() => server.stop());
  beforeEach(() => server.ask('FLUSHALL'));

  it('the database of REDIS_URL is lent to one test at a time', async () => {
    const database = new LentDatabase(server.url);
    const { url, dispose } = await database.take();
    expect(url).toBe(server.url);
    await expect(database.take()).rejects.toThrow('one database at a time');
    await dispose();
    await (await database.take()).dispose();
  });

  it('the database of REDIS_URL loses only the keys of the tests', async () => {
    const { url, dispose } = await new LentDatabase(server.url).take();
    await withRedis(url, async (redis) => {
      for (let id = 0; id < 5_000; id++) void redis.set(`asynq:{default}:t:${id}`, 'value');
      await redis.set('theirs', 'value');
    });
    await dispose();
    expect(await keysOf(url)).toEqual(['theirs']);
  });

  it('the database of REDIS_URL is not used if it has a key', async () => {
    await server.ask('SET theirs value');
    await expect(new LentDatabase(server.url).take()).rejects.toThrow('REDIS_URL is a database with 1 key');
  });

  it('the database of REDIS_URL is not used if its server is too old', async () => {
    const port = await acceptConnections((socket) =>
      socket.on('data', (bytes) => {
        for (const command of String(bytes).match(/^\*\d+\r\n\$\d+\r\n\w+/gm) ?? []) {
          const isInfo = command.toLowerCase().endsWith('info');
          socket.write(isInfo ? '$20\r\nredis_version:6.0.16\r\n' : '+OK\r\n');
        }
      }),
    );
    await expect(new LentDatabase(`redis://127.0.0.1:${port}`).requireUsable()).rejects.toThrow(
      "The tests need Redis 6.2 or later, or Valkey. The server of REDIS_URL is '6.0.16'.",
    );
  });

  it('a REDIS_URL that cannot be reached is reported', async () => {
    await expect(new LentDatabase('redis://127.0.0.1:1').requireUsable()).rejects.toThrow(
      /REDIS_URL.*ECONNREFUSED/,
    );
  });
});
