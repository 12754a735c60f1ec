import { readFileSync } from 'node:fs';
import { connect as connectTo, type AddressInfo } from 'node:net';
import { pipeline } from 'node:stream';
import { createServer } from 'node:tls';
import { Cluster, Redis, type RedisOptions } from 'ioredis';
import { afterEach, describe, expect, it } from 'vitest';
import type { RedisConnectionOptions } from '../../../../src/tasks/broker/redis/connection-options.ts';
import { connect, leaseRouteOf } from '../../../../src/tasks/broker/redis/lease-thread.ts';
import { RedisCluster } from '../../../redis/redis-cluster.ts';
import { RedisProcess } from '../../../redis/redis-process.ts';
import { RedisSentinels } from '../../../redis/redis-sentinels.ts';

const cleanups: (() => unknown)[] = [];

afterEach(async () => {
  for (const clean of cleanups.splice(0).reverse()) await clean();
});

/** What a thread, which has only a copy of the route, finds where it leads to. */
async function read(options: RedisConnectionOptions, key = 'where'): Promise<string | null> {
  const connection = connect(structuredClone(leaseRouteOf(options)));
  try {
    return await connection.run('test', (client) => client.get(key));
  } finally {
    connection.commands.disconnect();
    await connection.close();
  }
}

function clientOf(options: Omit<RedisOptions, 'replyMapping'>): Redis {
  const client = new Redis({ ...options, lazyConnect: true });
  cleanups.push(() => {
    client.disconnect();
  });
  return client;
}

async function secretServer(): Promise<RedisProcess> {
  const server = await RedisProcess.start({ args: ['--requirepass', 'secret'] });
  cleanups.push(() => server.stop());
  await server.ask('AUTH secret', 'SELECT 3', 'SET where here');
  return server;
}

const tlsFile = (name: string): Buffer =>
  readFileSync(new URL(`../../../redis/tls/${name}`, import.meta.url));
const CERT = tlsFile('cert.pem');

/** A server that only speaks to who knows its certificate. */
async function tlsServer(): Promise<{ readonly port: number }> {
  const redis = await RedisProcess.start();
  cleanups.push(() => redis.stop());
  await redis.ask('SET where here');
  const proxy = createServer({ cert: CERT, key: tlsFile('key.pem') }, (socket) => {
    const server = connectTo(redis.port, '127.0.0.1');
    pipeline(socket, server, socket, () => undefined);
  });
  cleanups.push(() => proxy.close());
  await new Promise<void>((resolve) => proxy.listen(0, 'localhost', resolve));
  return proxy.address() as AddressInfo;
}

describe('a thread connects to the same server', () => {
  it('by a URL', async () => {
    const { port } = await secretServer();
    const options = {
      url: `redis://:wrong@127.0.0.1:${port}/3`,
      password: 'secret',
      onHealth: () => undefined,
    };
    expect(await read(options)).toBe('here');
  });

  it('by a client whose other options contain functions', async () => {
    const { port } = await secretServer();
    const retryStrategy = (): number => 10;
    const client = clientOf({ port, host: '127.0.0.1', db: 3, password: 'secret', retryStrategy });
    expect(await read({ client })).toBe('here');
  });

  it('with TLS', async () => {
    const { port } = await tlsServer();
    const tls = { ca: CERT };
    expect(await read({ url: `rediss://localhost:${port}`, tls })).toBe('here');
    expect(await read({ client: clientOf({ host: 'localhost', port, tls }) })).toBe('here');
  });

  it('by a client of sentinels', async () => {
    const redis = await RedisSentinels.start();
    cleanups.push(() => redis.stop());
    const [{ port } = { port: 0 }] = redis.sentinels;
    const name = /master=(\w+)/u.exec(redis.url)?.[1] as string;
    const client = clientOf({ sentinels: [{ host: '127.0.0.1', port }], name });
    await client.set('where', 'here');
    expect(await read({ client })).toBe('here');
  });

  it('by a client of a cluster', async () => {
    const redis = await RedisCluster.start();
    cleanups.push(() => redis.stop());
    const client = new Cluster(redis.nodes.map(({ port }) => ({ host: '127.0.0.1', port })));
    cleanups.push(() => {
      client.disconnect();
    });
    await client.set('where', 'here');
    expect(await read({ client })).toBe('here');
    expect(await read({ url: redis.url })).toBe('here');
  });
});

describe('a thread cannot connect', () => {
  it('from options that contain functions', () => {
    const tls = { checkServerIdentity: () => undefined };
    expect(() => structuredClone(leaseRouteOf({ url: 'rediss://localhost', tls }))).toThrow(
      /could not be cloned/,
    );
  });

  it('from a client with a connector of its own', () => {
    const client = clientOf({ Connector: Object as never });
    expect(() => leaseRouteOf({ client })).toThrow('the client has a connector of its own');
  });

  it('from a client of a cluster that knows no node', () => {
    const client = new Cluster([{ port: 1 }], { lazyConnect: true });
    expect(() => leaseRouteOf({ client })).toThrow('no node of the cluster is known');
  });
});
