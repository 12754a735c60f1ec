import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Cluster, Redis } from 'ioredis';
import { RedisBroker } from 'escapement/tasks/redis';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { makeClient } from '../../../../src/tasks/broker/redis/client.ts';
import {
  parseRedisUrl,
  planConnection,
  type ServerPlan,
} from '../../../../src/tasks/broker/redis/connection-options.ts';
import type { RedisConnection } from '../../../../src/tasks/broker/redis/connection.ts';
import { RedisProcess } from '../../../redis/redis-process.ts';
import { until } from '../../../until.ts';
import {
  clientOf,
  closeAll,
  CLOSED,
  count,
  open,
  UNAVAILABLE,
  unavailableFor,
  untilReady,
  untilRefused,
} from './connection-support.ts';

describe('a connection to Redis', () => {
  const TLS = fileURLToPath(new URL('../../../redis/tls', import.meta.url));
  const ca = readFileSync(join(TLS, 'cert.pem'));

  let server: RedisProcess;
  let tlsPort: number;
  let socket: string;

  beforeAll(async () => {
    // Its port is free: no other test uses it.
    const other = await RedisProcess.start();
    tlsPort = other.port;
    await other.stop();
    server = await RedisProcess.start({
      args: [
        ...['--unixsocket', 'redis.sock'],
        ...['--tls-port', String(tlsPort), '--tls-auth-clients', 'no'],
        ...['--tls-cert-file', join(TLS, 'cert.pem'), '--tls-key-file', join(TLS, 'key.pem')],
        ...['--tls-ca-cert-file', join(TLS, 'cert.pem')],
      ],
    });
    socket = join(server.folder, 'redis.sock');
    await server.ask('ACL SETUSER worker on >s%40cret:/ ~asynq:* &* +@all -flushall');
  });
  afterAll(() => server.stop());
  beforeEach(() => server.ask('FLUSHALL'));
  afterEach(closeAll);

  async function databaseOf(connection: RedisConnection): Promise<string> {
    const info = await connection.run((client) => client.call('CLIENT', 'INFO'));
    return / db=(\d+) /.exec(info as string)?.[1] ?? 'none';
  }

  describe('a connection by URL', () => {
    it('a connection by URL runs scripts', async () => {
      const { connection, health } = open({ url: server.url });
      expect(connection.health).toEqual({ state: 'connecting' });
      expect(await count(connection)).toBe(1);
      expect(await count(connection)).toBe(2);
      expect(health).toEqual([{ state: 'ready' }]);
      expect(connection.health).toEqual({ state: 'ready' });
      expect(connection.isCluster).toBe(false);
    });

    it('a connection uses the database of its URL', async () => {
      expect(await databaseOf(open({ url: `${server.url}/7` }).connection)).toBe('7');
    });

    it('a connection uses the user and the password of its URL', async () => {
      const { connection } = open({ url: `redis://worker:s%2540cret%3A%2F@127.0.0.1:${server.port}` });
      expect(await connection.run((client) => client.call('ACL', 'WHOAMI'))).toBe('worker');
      const refused = connection.run((client) => client.call('FLUSHALL'));
      await expect(refused).rejects.toThrow(/^Redis refuses: NOPERM/);
    });

    it('a connection uses the user and the password of its options', async () => {
      const { connection } = open({ url: server.url, username: 'worker', password: 's%40cret:/' });
      expect(await connection.run((client) => client.call('ACL', 'WHOAMI'))).toBe('worker');
    });

    it('a connection to a database that does not exist is unavailable, and its error names the reason', async () => {
      const { connection, health } = open({ url: `${server.url}/16`, timeoutMs: 300 });
      await untilRefused(connection, {
        ...UNAVAILABLE,
        message: 'Redis is unavailable: ERR DB index is out of range',
      });
      expect(health.map(({ state }) => state)).toEqual(['unavailable']);
      expect(await server.ask('DBSIZE')).toEqual([':0']);
    });

    it('a connection with a wrong password is unavailable, and its error names the reason', async () => {
      const url = `redis://worker:no@127.0.0.1:${server.port}`;
      const { connection, health } = open({ url, timeoutMs: 1_000 });
      await untilRefused(connection, unavailableFor(/WRONGPASS/));
      const cause = { message: expect.stringContaining('WRONGPASS') as string };
      expect(health).toMatchObject([{ state: 'unavailable', cause }]);
    });

    it('a connection can use a Unix socket', async () => {
      expect(await count(open({ url: `redis-socket://${socket}` }).connection)).toBe(1);
      expect(await databaseOf(open({ url: `redis-socket://${socket}?db=3` }).connection)).toBe('3');
    });

    it('a connection to a rediss URL is encrypted', async () => {
      const { connection } = open({ url: `rediss://localhost:${tlsPort}`, tls: { ca } });
      expect(await count(connection)).toBe(1);
    });

    it('a server with an untrusted certificate, or one for another host, is unavailable', async () => {
      const options = { url: `rediss://localhost:${tlsPort}`, timeoutMs: 300 };
      const untrusted = { ...UNAVAILABLE, cause: { code: 'DEPTH_ZERO_SELF_SIGNED_CERT' } };
      await untilRefused(open(options).connection, untrusted);
      const { connection } = open({ ...options, tls: { ca, servername: 'other' } });
      const ofOther = { ...UNAVAILABLE, cause: { code: 'ERR_TLS_CERT_ALTNAME_INVALID' } };
      await untilRefused(connection, ofOther);
    });

    it('a TLS handshake that fails twice causes no uncaught exception', async () => {
      const { source } = planConnection({ url: `rediss://localhost:${tlsPort}` });
      const client = makeClient((source as { server: ServerPlan }).server, 300) as Redis;
      client.once('error', () => {
        client.stream.emit('error', new Error('the other side has given up too'));
      });
      const { connection } = open({ client, timeoutMs: 300 });
      await expect(count(connection)).rejects.toMatchObject(UNAVAILABLE);
      client.disconnect();
    });

    it('a connection to a replica is unavailable', async () => {
      const replica = await RedisProcess.start({ args: ['--replicaof', `127.0.0.1 ${server.port}`] });
      onTestFinished(() => replica.stop());
      const { connection } = open({ url: replica.url });
      await untilRefused(connection, unavailableFor(/READONLY/));
    });
  });

  it('messages reach the listeners of their channel', async () => {
    const { connection } = open({ url: server.url });
    const heard: string[] = [];
    const one = (message: Buffer): void => void heard.push(`one ${message.toString()}`);
    const other = (message: Buffer): void => void heard.push(`other ${message.toString()}`);
    await Promise.all([connection.channels.subscribe('a', one), connection.channels.subscribe('b', other)]);
    await connection.channels.subscribe('a', other);
    const publish = (channel: string, text: string): Promise<number> =>
      connection.run((client) => client.publish(channel, text));
    await publish('a', '1');
    await publish('b', '2');
    // Messages come by a connection of their own: they may arrive after the answer to `publish`.
    await until('the first two are heard', () => heard.length >= 3);
    connection.channels.unsubscribe('a', one);
    await publish('a', '3');
    await until('all is heard', () => heard.length >= 4);
    expect(heard).toEqual(['one 1', 'other 1', 'other 2', 'other 3']);
  });

  it('the connection for messages exists only while there are listeners', async () => {
    const { connection } = open({ url: server.url });
    const clients = async (): Promise<number> => {
      const list = connection.run((client) => client.call('CLIENT', 'LIST', 'TYPE', 'PUBSUB'));
      return ((await list) as string).split('id=').length - 1;
    };
    const listener = (): void => undefined;
    await until('those of other tests are gone', async () => (await clients()) === 0);
    await connection.channels.subscribe('a', listener);
    expect(await clients()).toBe(1);
    connection.channels.unsubscribe('a', listener);
    connection.channels.unsubscribe('a', listener);
    await until('the connection is gone', async () => (await clients()) === 0);
    await connection.channels.subscribe('a', listener);
    expect(await clients()).toBe(1);
  });

  it('a client that was passed in is used and not closed', async () => {
    const client = clientOf(server.url);
    const { connection, health } = open({ client });
    expect(await count(connection)).toBe(1);
    await connection.channels.subscribe('a', () => undefined);
    await connection.close();
    await expect(count(connection)).rejects.toMatchObject(CLOSED);
    expect(await client.get('asynq:{default}:count')).toBe('1');
    expect(health).toEqual([{ state: 'ready' }]);
    const events = ['connecting', 'ready', 'error', 'close', 'end'];
    expect(events.map((event) => client.listenerCount(event))).toEqual([0, 0, 0, 0, 0]);
  });

  it('a client that was passed in is connected if it is not', async () => {
    const client = clientOf(server.url, { lazyConnect: true });
    expect(await count(open({ client }).connection)).toBe(1);
    const { connection, health } = open({ client });
    expect(connection.health).toEqual({ state: 'ready' });
    expect(await count(connection)).toBe(2);
    expect(health).toEqual([]);
  });

  it('commands of a client that was passed in have a time limit', async () => {
    const client = clientOf(server.url);
    const { connection } = open({ client, timeoutMs: 500 });
    await untilReady(connection);
    server.pause();
    await expect(count(connection)).rejects.toMatchObject(UNAVAILABLE);
    server.resume();
    // Others may wait for theirs.
    expect(await client.get('asynq:{default}:count')).toBe('1');
  });

  describe('options of a connection', () => {
    const wrongType = { name: 'TypeError', code: 'ERR_INVALID_ARG_TYPE' };
    const wrongValue = { name: 'TypeError', code: 'ERR_INVALID_ARG_VALUE' };
    const unused = new Redis({ lazyConnect: true });
    const prefixed = new Redis({ lazyConnect: true, keyPrefix: 'p:' });
    const prefixedCluster = new Cluster(['redis://there'], { lazyConnect: true, keyPrefix: 'p:' });
    const pipelined = new Redis({ lazyConnect: true, enableAutoPipelining: true });
    const withTexts = new Cluster(['redis://there'], {
      lazyConnect: true,
      redisOptions: { stringNumbers: true },
    });

    it.each([
      ['none', undefined, wrongType],
      ['nothing', {}, wrongType],
      ['a url that is no string', { url: 5 }, wrongType],
      ['a url that is none', { url: 'nowhere' }, wrongValue],
      ['url and client', { url: 'redis://there', client: prefixed }, wrongValue],
      ['a password beside a client', { password: 'p', client: unused }, wrongValue],
      ['tls without a url of it', { url: 'redis://there', tls: {} }, wrongValue],
      ['tls that is no object', { url: 'rediss://there', tls: true }, wrongType],
      ['no time', { url: 'redis://there', timeoutMs: 0 }, { name: 'RangeError', code: 'ERR_OUT_OF_RANGE' }],
      ['a leaseThread that is no boolean', { url: 'redis://there', leaseThread: 'no' }, wrongType],
      ['a listener that is none', { url: 'redis://there', onHealth: 'log' }, wrongType],
      ['a client that is none', { client: {} }, wrongType],
      ['a client that is undefined', { client: undefined }, wrongType],
      ['a client with a prefix', { client: prefixed }, wrongValue],
      ['a cluster with a prefix', { client: prefixedCluster }, wrongValue],
      ['a client that pipelines by itself', { client: pipelined }, wrongValue],
      ['a cluster that returns numbers as text', { client: withTexts }, wrongValue],
    ])('options of a connection are validated: %s', (_, options, error) => {
      expect(() => new RedisBroker(options as never)).toThrow(expect.objectContaining(error));
    });

    it('a url beside an undefined client, or a client beside an undefined url, is a valid option', async () => {
      const withUrl = new RedisBroker({ url: server.url, client: undefined });
      const withClient = new RedisBroker({ url: undefined, client: clientOf(server.url) });
      for (const broker of [withUrl, withClient]) {
        onTestFinished(() => broker.close());
        await broker.ping();
        expect(broker.address).toContain(new URL(server.url).port);
      }
    });
  });
});

const at = (host: string, port: number): object => ({ host, port });
const plain = { kind: 'server', isTls: false, db: 0, server: at('there', 6379) };
const socket = { kind: 'socket', isTls: false, db: 0, path: '/run/redis.sock' };
const sentinels = [at('one', 26_379), at('two', 5)];
const sentinel = { kind: 'sentinel', isTls: false, db: 0, master: 'm', sentinels };
const cluster = { kind: 'cluster', isTls: false, nodes: [at('one', 6379), at('::1', 7000)] };

describe('a URL of Redis', () => {
  it.each([
    ['redis://there', plain],
    ['redis://there/', plain],
    ['redis://', { ...plain, server: { host: 'localhost', port: 6379 } }],
    ['redis://there:7000/3', { ...plain, db: 3, server: { host: 'there', port: 7000 } }],
    ['redis://[::1]:7000', { ...plain, server: { host: '::1', port: 7000 } }],
    ['redis://:secret@there', { ...plain, password: 'secret' }],
    ['redis://me:secret@there', { ...plain, username: 'me', password: 'secret' }],
    ['redis://me@there', { ...plain, username: 'me' }],
    ['redis://m%40e:s%3A%2F%3F%23%40%25@there', { ...plain, username: 'm@e', password: 's:/?#@%' }],
    ['redis://:a:b@there', { ...plain, password: 'a:b' }],
    ['redis://:a@b@there', { ...plain, password: 'a@b' }],
    ['rediss://there', { ...plain, isTls: true }],
    ['redis-socket:///run/redis.sock', socket],
    [
      'redis-socket://:pw@/run/my%20redis.sock?db=4',
      { ...socket, db: 4, path: '/run/my redis.sock', password: 'pw' },
    ],
    ['redis-sentinel://one,two:5?master=m', sentinel],
    ['redis-sentinel://one,two:5/7?master=m', { ...sentinel, db: 7 }],
    ['redis-sentinel://:pw@one,two:5?master=m', { ...sentinel, password: 'pw' }],
    ['redis-sentinel://one,two:5?master=my%20m', { ...sentinel, master: 'my m' }],
    ['rediss-sentinel://one,two:5?master=m', { ...sentinel, isTls: true }],
    ['redis-cluster://one,[::1]:7000', cluster],
    ['redis-cluster://me:pw@one,[::1]:7000/0', { ...cluster, username: 'me', password: 'pw' }],
    ['rediss-cluster://one,[::1]:7000', { ...cluster, isTls: true }],
  ])('a URL leads to a server, a socket, sentinels or a cluster: %s', (url, address) => {
    expect(parseRedisUrl('url', url)).toEqual(address);
  });
});

describe('a URL that is not valid', () => {
  it.each([
    ['', 'begins with redis://'],
    ['there:6379', 'begins with redis://'],
    ['http://there', 'begins with redis://'],
    ['REDIS://there', 'begins with redis://'],
    ['redis://there#fragment', 'begins with redis://'],
    ['redis://there:0', 'with hosts as in'],
    ['redis://there:65536', 'with hosts as in'],
    ['redis://there:port', 'with hosts as in'],
    ['redis://::1', 'with hosts as in'],
    ['redis://one,two', 'with hosts as in'],
    ['redis-cluster://one,,two', 'with hosts as in'],
    ['redis-cluster://', 'with hosts as in'],
    ['redis-cluster://one/1', 'a cluster has only 0'],
    ['redis://there/one', 'the number of a database'],
    ['redis://there/-1', 'the number of a database'],
    ['redis-socket:///path?db=x', 'the number of a database'],
    ['redis-socket://path/to', 'an absolute path'],
    ['redis-socket:///', 'an absolute path'],
    ['redis-sentinel://one', 'names the primary'],
    ['redis-sentinel://one?master=', 'names the primary'],
    ['redis-sentinel://one?master=m&db=1', 'without ?db='],
    ['redis://there?db=1', 'without ?db='],
    ['redis://there?=1', 'without ?='],
    ['redis://a%2@there', 'percent signs'],
    ['redis://there%zz', 'percent signs'],
  ])('a URL that is not valid is rejected: %s', (url, message) => {
    const parse = (): unknown => parseRedisUrl('options.url', url);
    const error = { name: 'TypeError', code: 'ERR_INVALID_ARG_VALUE' };
    expect(parse).toThrow(expect.objectContaining(error));
    expect(parse).toThrow(/^options\.url must be a URL /);
    expect(parse).toThrow(message);
  });

  it.each([
    'redis://me:secret@there:port',
    'redis://me:sec/secret@there',
    'redis://me:sec@secret@there:port',
    'redis://me:sec%zsecret@there',
    'redis://me:s#secret@there',
    'me:secret@there',
    'redis-sentinel://:secret@there',
    'redis-socket://:secret@there/path',
    'HTTP://me:secret\n@there',
  ])('the error for a URL has no password: %j', (url) => {
    expect(() => parseRedisUrl('url', url)).toThrow(/\*\*\*@there/);
    expect(() => parseRedisUrl('url', url)).not.toThrow(/secret/);
  });

  it('the error for a URL has no password of the query', () => {
    const parse = (): unknown => parseRedisUrl('url', 'redis://there?password=secret&a=b');
    expect(parse).toThrow(/there\?password=\*\*\*&a=b/);
    expect(parse).not.toThrow(/secret/);
  });

  it('a URL that is not a string is rejected', () => {
    expect(() => parseRedisUrl('url', 5)).toThrow('url must be a string. Received 5');
  });
});
