import { getEventListeners } from 'node:events';
import type { Redis } from 'ioredis';
import { describe, expect, it, onTestFinished } from 'vitest';
import { connectRedis } from '../../../src/cli/tasks/connect.ts';
import { connectionOf, type ConnectionOptions, type ToRedis } from '../../../src/cli/tasks/connection.ts';
import type { Connect } from '../../../src/cli/tasks/run.ts';
import { newTask } from '../../conformance/broker/support.ts';
import { acceptConnections } from '../../listen.ts';
import { redisForTest } from '../../tasks/broker/redis/setup.ts';
import { openTarget, tasksCommand } from './support/tasks-command.ts';

const redis = (
  url: string,
  { name, ...more }: { name?: string; [option: string]: unknown } = {},
): object => ({
  ...{ kind: 'redis', name: name ?? (expect.any(String) as string), options: { url, ...more } },
});

function http(options: ConnectionOptions, environment: Record<string, string> = {}): object {
  const connection = connectionOf(options, environment);
  if (connection.kind !== 'http') throw new Error('not HTTP');
  return connection.headers;
}

it.each<[ConnectionOptions, Record<string, string>, object]>([
  [{}, {}, redis('redis://127.0.0.1:6379', { name: '127.0.0.1:6379' })],
  [{ uri: 'host:1' }, {}, redis('redis://host:1', { name: 'host:1' })],
  [{ uri: 'host:1', db: 2 }, {}, redis('redis://host:1/2')],
  [{ uri: 'redis://host/1', db: 2 }, {}, redis('redis://host/2')],
  [{ uri: 'a' }, { ESCAPEMENT_URI: 'b', REDIS_URL: 'c' }, redis('redis://a')],
  [{}, { ESCAPEMENT_URI: 'b', REDIS_URL: 'c' }, redis('redis://b')],
  [{}, { ESCAPEMENT_URI: '', REDIS_URL: 'redis://c' }, redis('redis://c')],
  [{ uri: 'redis://u:p@h' }, { ESCAPEMENT_PASSWORD: 'e' }, redis('redis://u:p@h', { name: 'h' })],
  [{ uri: 'redis://u@h' }, { ESCAPEMENT_PASSWORD: 'e/@' }, redis('redis://u@h', { password: 'e/@' })],
  [
    { uri: 'redis://u:p@h', password: 'x' },
    { ESCAPEMENT_PASSWORD: 'e' },
    redis('redis://u:p@h', { password: 'x' }),
  ],
  [{ uri: 'h', username: 'a:b', password: 'x' }, {}, redis('redis://h', { username: 'a:b', password: 'x' })],
  [{ uri: 'h', tls: true }, {}, redis('rediss://h', { tls: {} })],
  [{ uri: 'rediss://h', db: 1 }, {}, redis('rediss://h/1', { tls: {} })],
  [{ uri: 'redis://h', insecure: true }, {}, redis('rediss://h', { tls: { rejectUnauthorized: false } })],
  [{ uri: 'h', tls_server: 's' }, {}, redis('rediss://h', { tls: { servername: 's' } })],
  [{ cluster: true, uri: 'h:1' }, {}, redis('redis-cluster://h:1')],
  [{ cluster: true }, { ESCAPEMENT_URI: 'redis://h:1' }, redis('redis-cluster://h:1')],
  [{ uri: 'REDIS://h', tls: true }, {}, redis('rediss://h', { tls: {} })],
  [{ cluster_addrs: 'h:1,h:2' }, {}, redis('redis-cluster://h:1,h:2', { name: 'h:1,h:2' })],
  [{ cluster: true, uri: 'redis-cluster://h:1' }, {}, redis('redis-cluster://h:1')],
  [
    { cluster: true, uri: 'rediss://u:p@h:1' },
    {},
    redis('rediss-cluster://u:p@h:1', { name: 'h:1', tls: {} }),
  ],
  [{ uri: 'redis-sentinel://a:1,b:2/0?master=m' }, {}, redis('redis-sentinel://a:1,b:2/0?master=m')],
  [
    { uri: 'redis-sentinel://:p@a/0?master=m', db: 3 },
    { ESCAPEMENT_PASSWORD: 'e' },
    redis('redis-sentinel://:p@a/3?master=m', { password: 'e', name: 'a' }),
  ],
  [{ uri: 'redis-sentinel://a?master=m', tls: true }, {}, redis('rediss-sentinel://a?master=m', { tls: {} })],
  [
    { uri: 'redis-socket:///run/redis.sock' },
    {},
    redis('redis-socket:///run/redis.sock', { name: '/run/redis.sock' }),
  ],
  [{ uri: 'redis-socket:///r.sock?db=1', db: 2 }, {}, redis('redis-socket:///r.sock?db=2')],
  [{ uri: 'redis://[::1]:6379' }, {}, redis('redis://[::1]:6379', { name: '[::1]:6379' })],
])('the options %j with the environment %j lead to Redis', (options, environment, expected) => {
  expect(connectionOf(options, environment)).toEqual(expected);
});

it('the flags of a command are the options of its connection', async () => {
  const connections: unknown[] = [];
  const connect: Connect = (connection) => {
    connections.push(connection);
    return Promise.reject(new Error('no connection'));
  };
  await tasksCommand(['stats', '--cluster_addrs', 'h:1,h:2', '--insecure', '--tls_server', 's'], { connect });
  await tasksCommand(['stats', '-u', 'h', '-n', '2'], { connect });
  const tls = { rejectUnauthorized: false, servername: 's' };
  expect(connections).toEqual([redis('rediss-cluster://h:1,h:2', { tls }), redis('redis://h/2')]);
});

it('a connection to the HTTP API has the headers that authorize its requests', () => {
  expect(http({ uri: 'https://h/x' })).toEqual({});
  expect(http({ uri: 'http://h' }, { ESCAPEMENT_TOKEN: 't' })).toEqual({ authorization: 'Bearer t' });
  expect(http({ uri: 'http://h', token: 'o' }, { ESCAPEMENT_TOKEN: 't' })).toEqual({
    authorization: 'Bearer o',
  });
  const basic = (login: string): object => ({
    authorization: `Basic ${Buffer.from(login).toString('base64')}`,
  });
  expect(http({ uri: 'http://u:p%40@h' })).toEqual(basic('u:p@'));
  expect(http({ uri: 'http://h', username: 'u' }, { ESCAPEMENT_PASSWORD: 'e' })).toEqual(basic('u:e'));
  expect(http({ uri: 'http://h', http_header: ['X-Key: a', 'cookie:b=c'] })).toEqual({
    ...{ 'x-key': 'a', cookie: 'b=c' },
  });
});

it.each<[ConnectionOptions, RegExp]>([
  [{ uri: 'ftp://u:secret@h' }, /'ftp' is not a known scheme/],
  [{ uri: 'redis://u:secret@' }, /not a valid URI/],
  [{ uri: 'redis://u:secret@x@h' }, /not a valid URI/],
  [{ uri: 'redis://u:x/secret@h' }, /not a valid URI/],
  [{ uri: 'redis://u:x?secret@h' }, /not a valid URI/],
  [{ uri: 'redis://u:x#secret@h' }, /not a valid URI/],
  [{ uri: 'u:secret@x@h' }, /not a valid URI/],
  [{ uri: 'http://u:secret@' }, /not a valid URI/],
  [{ uri: 'http://u:%secret@h' }, /not a valid URI/],
  [{ uri: 'http://u:secret@h', db: 1 }, /--db is for Redis, and http:\/\/h is not/],
  [{ uri: 'redis://u:secret@h', token: 't' }, /--token and --http_header are for the HTTP API/],
  [{ uri: 'http://h', password: 'secret' }, /--password over HTTP needs --username/],
  [{ uri: 'http://h', token: 'secret\n' }, /--token must be visible ASCII/],
  [{ uri: 'http://h', http_header: ['secret'] }, /'Name: value'/],
  [{ uri: 'http://h', http_header: ['a: secret\r\nb: c'] }, /'Name: value'/],
])('the options %j are rejected without a secret in the message', (options, message) => {
  expect(() => connectionOf(options, {})).toThrow(message);
  expect(() => connectionOf(options, {})).not.toThrow(/secret/);
});

describe('connectRedis', () => {
  const connection = (url: string): ToRedis => connectionOf({ uri: url }, {}) as ToRedis;

  it('a connection leaves no listener on the signal, whether Redis responds or not', async () => {
    const { signal } = new AbortController();
    const { url } = await redisForTest();
    const broker = await connectRedis(connection(url), signal);
    onTestFinished(() => broker.close());
    await expect(connectRedis(connection('redis://127.0.0.1:1'), signal)).rejects.toMatchObject({
      ...{
        code: 'ERR_BROKER_UNAVAILABLE',
        message: expect.stringMatching(/^cannot reach Redis at/) as string,
      },
    });
    expect(getEventListeners(signal, 'abort')).toEqual([]);
  });

  it('a connection that is being made rejects with the reason of the signal', async () => {
    const controller = new AbortController();
    const port = await acceptConnections(() => controller.abort(new Error('interrupted')));
    const connecting = connectRedis(connection(`redis://127.0.0.1:${port}`), controller.signal);
    await expect(connecting).rejects.toThrow('interrupted');
  });
});

/** A queue with a task, an id of none, and a task in no list. */
async function damaged(): Promise<{ url: string; redis: Redis }> {
  const { broker, redis, url } = await redisForTest();
  await broker.enqueue(newTask({ id: 'fine' }));
  await broker.enqueue(newTask({ id: 'lost' }));
  await redis.lrem('asynq:{default}:pending', 0, 'lost');
  await redis.lpush('asynq:{default}:pending', 'gh\u001bost');
  return { url, redis };
}

it('tasks repair lists defects, and changes nothing', async () => {
  const { url, redis } = await damaged();
  const { stdout, stderr, code } = await tasksCommand(['repair', '-u', url]);
  expect([stderr, code]).toEqual(['', 1]);
  expect(stdout).toMatch(
    /default │ id-without-task │ gh.+ost │ asynq:\{default\}:pending │ removed from the list/,
  );
  expect(stdout).toMatch(/default │ task-in-no-list │ lost +│ +│ added to the list of its state/);
  expect(stdout).not.toContain('\u001b');
  expect(await redis.lrange('asynq:{default}:pending', 0, -1)).toEqual(['gh\u001bost', 'fine']);
});

it('tasks repair --apply repairs defects, and lists them as JSON', async () => {
  const { url, redis } = await damaged();
  const { stdout, code } = await tasksCommand(['repair', '-u', url, '-q', 'default', '--apply', '--json']);
  expect(code).toBe(0);
  expect(JSON.parse(stdout)).toEqual({
    isApplied: true,
    defects: [
      { kind: 'id-without-task', queue: 'default', id: 'gh\u001bost', where: 'asynq:{default}:pending' },
      { kind: 'task-in-no-list', queue: 'default', id: 'lost', where: '' },
    ],
  });
  expect(await redis.lrange('asynq:{default}:pending', 0, -1)).toEqual(['lost', 'fine']);
  expect(await tasksCommand(['repair', '-u', url])).toEqual({
    stdout: 'no defects\n',
    stderr: '',
    code: 0,
  });
});

it('tasks repair is not available over the HTTP API', async () => {
  const { command } = await openTarget('http');
  expect(await command('repair')).toMatchObject({
    stderr: expect.stringContaining('repairing queues is not available over the HTTP API') as string,
    code: 2,
  });
});
