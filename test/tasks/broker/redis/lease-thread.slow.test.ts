import { existsSync, readdirSync, readFileSync, readlinkSync, writeFileSync } from 'node:fs';
import { type AddressInfo, connect as connectTo } from 'node:net';
import { join } from 'node:path';
import { pipeline } from 'node:stream';
import { createServer } from 'node:tls';
import { pathToFileURL } from 'node:url';
import { systemClock } from 'escapement';
import { Client, EmbeddedBroker, type LeasedTask, type LeaseHolder, Task } from 'escapement/tasks';
import { RedisBroker } from 'escapement/tasks/redis';
import { Cluster, Redis, type RedisOptions } from 'ioredis';
import { describe, expect, it, onTestFinished, type TestContext, vi } from 'vitest';
import { optionsOfRoute, routeOf } from '../../../../src/tasks/broker/redis/client.ts';
import type { RedisConnectionOptions } from '../../../../src/tasks/broker/redis/connection-options.ts';
import { RedisConnection } from '../../../../src/tasks/broker/redis/connection.ts';
import { LeaseThread, leaseThreadFile } from '../../../../src/tasks/broker/redis/lease-thread.ts';
import { folderOfTest } from '../../../folder.ts';
import { freshDatabase, hasOneDatabase } from '../../../redis/redis-case.ts';
import { RedisCluster } from '../../../redis/redis-cluster.ts';
import { RedisProcess } from '../../../redis/redis-process.ts';
import { RedisSentinels } from '../../../redis/redis-sentinels.ts';
import { withRedis } from '../../../redis/with-redis.ts';
import { until } from '../../../until.ts';
import { raise } from '../../support/bench.ts';

/* Real threads, of the built package, and a real Redis. */

/** Long enough for a thread to start on a machine that has other things to do. */
const LEASE_MS = 6_000;
const QUEUE = 'default';

interface World {
  readonly url: string;
  readonly broker: RedisBroker;
  readonly errors: unknown[];
  readonly holder: LeaseHolder;
  /** Leases the next task; no server has it. */
  readonly take: () => Promise<LeasedTask>;
  /** When leases end, by id, in seconds. */
  readonly leaseEnds: () => Promise<Record<string, number>>;
  /** Connections there are. */
  readonly connections: () => Promise<number>;
}

async function startRedis({ onTestFinished }: TestContext): Promise<RedisProcess> {
  const server = await RedisProcess.start();
  onTestFinished(() => server.stop());
  return server;
}

async function world({ onTestFinished }: TestContext, url?: string): Promise<World> {
  const database = url === undefined ? await freshDatabase() : { url, dispose: () => Promise.resolve() };
  onTestFinished(() => database.dispose());
  const broker = new RedisBroker({ url: database.url });
  onTestFinished(() => broker.close());
  const client = new Client({ broker });
  const errors: unknown[] = [];
  const holder = broker.leaseHolder({
    ...{ queues: [QUEUE], slots: 3, leaseMs: LEASE_MS },
    onError: (error) => errors.push(error),
  });
  if (holder === undefined) throw new Error('there is one');
  return {
    ...{ url: database.url, broker, errors, holder },
    take: async () => {
      await client.enqueue(new Task('work'));
      const [leased] = await broker.dequeue(QUEUE, 1, LEASE_MS);
      if (leased === undefined) throw new Error('nothing to take');
      return leased;
    },
    leaseEnds: () =>
      withRedis(database.url, async (redis) => {
        const flat = await redis.zrange(`asynq:{${QUEUE}}:lease`, '0', '-1', 'WITHSCORES');
        const ends: Record<string, number> = {};
        for (let at = 0; at < flat.length; at += 2) ends[flat[at] as string] = Number(flat[at + 1]);
        return ends;
      }),
    connections: () =>
      withRedis(database.url, async (redis) => {
        const clients = (await redis.client('LIST')) as string;
        return clients.split('\n').filter((line) => line.includes('name=escapement')).length;
      }),
  };
}

describe('a lease thread', { concurrent: !hasOneDatabase }, () => {
  it('a lease thread renews the leases that it holds, and none that were released', async (context) => {
    const { holder, take, leaseEnds, errors } = await world(context);
    const [kept, gone] = [await take(), await take()];
    const first = await leaseEnds();
    holder.hold(0, kept, 0);
    holder.hold(1, gone, 0);
    holder.release(1);
    await until('one is renewed', () => holder.renewedUntilMs(0) > 0);
    const ends = await leaseEnds();
    expect(ends[kept.message.id]).toBeGreaterThan(first[kept.message.id] as number);
    expect(ends[gone.message.id]).toBe(first[gone.message.id]);
    expect(holder.renewedUntilMs(0)).toBeLessThanOrEqual(Date.now() + LEASE_MS);
    expect(errors).toEqual([]);
  });

  it('a lease thread has one connection, and none after it is closed', async (context) => {
    const server = await startRedis(context);
    const { holder, take, connections, broker } = await world(context, server.url);
    const task = await take();
    const before = await connections();
    holder.hold(0, task, 0);
    await until(
      'it renews',
      async () => holder.renewedUntilMs(0) > 0 && (await connections()) === before + 1,
    );
    await holder.close();
    await holder.close();
    await until('its connection is gone', async () => (await connections()) === before);
    const another = broker.leaseHolder({ queues: [QUEUE], slots: 1, leaseMs: LEASE_MS, onError: vi.fn() });
    another?.hold(0, task, 0);
    await until('another renews', () => (another?.renewedUntilMs(0) ?? 0) > 0);
    await broker.close();
    await until('all are gone', async () => (await connections()) === 0);
    expect(broker.leaseHolder({ queues: [], slots: 1, leaseMs: 1, onError: vi.fn() })).toBeUndefined();
  });

  it('a lease thread continues after an outage of Redis, and reports the outage once', async (context) => {
    const server = await startRedis(context);
    const { holder, take, errors } = await world(context, server.url);
    const task = await take();
    holder.hold(0, task, 0);
    await until('it renews', () => holder.renewedUntilMs(0) > 0);
    server.pause();
    await until('it fails', () => errors.length === 1);
    expect(errors).toMatchObject([{ code: 'ERR_BROKER_UNAVAILABLE', op: 'RedisBroker.leaseHolder' }]);
    const before = holder.renewedUntilMs(0);
    server.resume();
    await until('it renews again', () => holder.renewedUntilMs(0) > before);
    expect(errors).toMatchObject([{ message: expect.stringContaining('Redis is unavailable') as string }]);
  });
});

describe('a lease thread that is not running', () => {
  /** A thread of that program. */
  function threadOf(program: () => URL) {
    const errors: unknown[] = [];
    const thread = new LeaseThread({
      ...{ queues: [QUEUE], slots: 2, leaseMs: LEASE_MS, file: program, onClose: vi.fn() },
      route: () => routeOf({ url: 'redis://localhost' }),
      onError: (error) => errors.push(error),
    });
    onTestFinished(() => thread.close());
    return { thread, errors };
  }

  function programOf(source: string): () => URL {
    const folder = folderOfTest();
    writeFileSync(join(folder, 'program.mjs'), source);
    return () => pathToFileURL(join(folder, 'program.mjs'));
  }

  /** Whether this process has a file open. */
  function isOpen(path: string): boolean {
    return readdirSync('/proc/self/fd').some((fd) => {
      try {
        return readlinkSync(`/proc/self/fd/${fd}`) === path;
      } catch {
        return false; // the one that was reading the list
      }
    });
  }

  const task = { message: { id: 'a', queue: QUEUE }, epoch: 1 } as LeasedTask;

  it.each([
    ['it throws', `throw new Error('no')`, new Error('no')],
    ['it ends', `process.exit(3)`, 'exit code 3'],
  ])(
    'a lease thread that is not running because %s is reported once, and not started again',
    async (_, source, cause) => {
      const { thread, errors } = threadOf(programOf(source));
      thread.hold(0, task, 0);
      await until('it is reported', () => errors.length > 0);
      thread.release(0);
      thread.hold(0, task, 0);
      await thread.close();
      expect(errors).toMatchObject([
        { message: expect.stringContaining('the lease thread is not running') as string, cause },
      ]);
      expect(thread.renewedUntilMs(0)).toBe(0);
    },
  );

  it('a server with more slots than there is memory for has no lease thread, as its logger reports', () => {
    const broker = new RedisBroker({ url: 'redis://localhost' });
    onTestFinished(() => broker.close());
    const onError = vi.fn();
    const options = { queues: [QUEUE], slots: Number.MAX_SAFE_INTEGER, leaseMs: LEASE_MS, onError };
    expect(broker.leaseHolder(options)).toBeUndefined();
    expect(onError.mock.calls).toMatchObject([
      [{ message: expect.stringContaining('the lease thread is not running') as string }],
    ]);
  });

  it('a missing program of the lease thread is reported once', () => {
    const missing = threadOf(raise(new Error('no file')));
    missing.thread.hold(0, task, 0);
    missing.thread.hold(1, task, 0);
    expect(missing.errors).toMatchObject([{ cause: new Error('no file') }]);
  });

  it('a closed lease thread reports nothing', async () => {
    const { thread, errors } = threadOf(programOf(`setInterval(() => {}, 1000)`));
    thread.hold(0, task, 0);
    await thread.close();
    thread.hold(1, task, 0);
    expect(errors).toEqual([]);
  });

  it.skipIf(process.platform !== 'linux')(
    'a lease thread that is closed while it loads its modules leaves no file open',
    async () => {
      const path = join(folderOfTest(), 'module.js');
      const { thread, errors } = threadOf(
        programOf(`
          import { open } from 'node:fs/promises';
          const endMs = Date.now() + 300;
          const read = async () => {
            while (Date.now() < endMs) await (await open(${JSON.stringify(path)}, 'w')).close();
          };
          await Promise.all(Array.from({ length: 20 }, read));
          await import(${JSON.stringify(leaseThreadFile().href)});
        `),
      );
      thread.hold(0, task, 0);
      await until('it reads the file', () => existsSync(path));
      await thread.close();
      await thread.close();
      expect(isOpen(path)).toBe(false);
      expect(errors).toEqual([]);
    },
  );

  it('a lease thread does not start for a task of another queue', () => {
    const { thread, errors } = threadOf(raise(new Error('it starts')));
    thread.hold(0, { ...task, message: { ...task.message, queue: 'other' } }, 0);
    expect(errors).toEqual([]);
  });

  it('there is no lease thread if it is turned off, if the broker has its own clock, or if the broker is embedded', async () => {
    const options = { queues: [QUEUE], slots: 1, leaseMs: LEASE_MS, onError: vi.fn() };
    const broker = new RedisBroker({ url: 'redis://localhost:1', clock: { ...systemClock } });
    onTestFinished(() => broker.close());
    expect(broker.leaseHolder(options)).toBeUndefined();
    const without = new RedisBroker({ url: 'redis://localhost:1', leaseThread: false });
    onTestFinished(() => without.close());
    expect(without.leaseHolder(options)).toBeUndefined();
    expect('leaseHolder' in (await EmbeddedBroker.open())).toBe(false);
  });
});

/** What a thread, which has only a copy of the route, finds where it leads to. */
async function read(options: RedisConnectionOptions, key = 'where'): Promise<string | null> {
  const copied = optionsOfRoute(structuredClone(routeOf(options)));
  const connection = new RedisConnection(copied);
  try {
    return await connection.run((client) => client.get(key));
  } finally {
    await connection.close();
    if ('client' in copied) copied.client.disconnect();
  }
}

function clientOf(options: Omit<RedisOptions, 'replyMapping'>): Redis {
  const client = new Redis({ ...options, lazyConnect: true });
  onTestFinished(() => {
    client.disconnect();
  });
  return client;
}

async function secretServer(): Promise<RedisProcess> {
  const server = await RedisProcess.start({ args: ['--requirepass', 'secret'] });
  onTestFinished(() => server.stop());
  await server.ask('AUTH secret', 'SELECT 3', 'SET where here');
  return server;
}

const tlsFile = (name: string): Buffer =>
  readFileSync(new URL(`../../../redis/tls/${name}`, import.meta.url));
const CERT = tlsFile('cert.pem');

/** A server that accepts only clients that trust its certificate. */
async function tlsServer(): Promise<{ readonly port: number }> {
  const redis = await RedisProcess.start();
  onTestFinished(() => redis.stop());
  await redis.ask('SET where here');
  const proxy = createServer({ cert: CERT, key: tlsFile('key.pem') }, (socket) => {
    const server = connectTo(redis.port, '127.0.0.1');
    pipeline(socket, server, socket, () => undefined);
  });
  onTestFinished(() => void proxy.close());
  await new Promise<void>((resolve) => proxy.listen(0, 'localhost', resolve));
  return proxy.address() as AddressInfo;
}

describe('a thread connects to the same server', () => {
  it('a lease thread connects by the URL of the broker', async () => {
    const { port } = await secretServer();
    const url = `redis://:wrong@127.0.0.1:${port}/3`;
    expect(await read({ url, password: 'secret', onHealth: () => undefined })).toBe('here');
  });

  it('a lease thread connects by a client whose other options contain functions', async () => {
    const { port } = await secretServer();
    const retryStrategy = (): number => 10;
    const client = clientOf({ port, host: '127.0.0.1', db: 3, password: 'secret', retryStrategy });
    expect(await read({ client })).toBe('here');
  });

  it('a lease thread connects with TLS', async () => {
    const { port } = await tlsServer();
    const tls = { ca: CERT };
    expect(await read({ url: `rediss://localhost:${port}`, tls })).toBe('here');
    expect(await read({ client: clientOf({ host: 'localhost', port, tls }) })).toBe('here');
  });

  it('a lease thread connects by a client of sentinels', async () => {
    const redis = await RedisSentinels.start();
    onTestFinished(() => redis.stop());
    const [{ port } = { port: 0 }] = redis.sentinels;
    const name = /master=(\w+)/u.exec(redis.url)?.[1] as string;
    const client = clientOf({ sentinels: [{ host: '127.0.0.1', port }], name });
    await client.set('where', 'here');
    expect(await read({ client })).toBe('here');
  });

  it('a lease thread connects by a client of a cluster', async () => {
    const redis = await RedisCluster.start();
    onTestFinished(() => redis.stop());
    const client = new Cluster(redis.nodes.map(({ port }) => ({ host: '127.0.0.1', port })));
    onTestFinished(() => {
      client.disconnect();
    });
    await client.set('where', 'here');
    expect(await read({ client })).toBe('here');
    expect(await read({ url: redis.url })).toBe('here');
  });
});

it('options that contain functions cannot be sent to a lease thread', () => {
  const tls = { checkServerIdentity: () => undefined };
  expect(() => structuredClone(routeOf({ url: 'rediss://localhost', tls }))).toThrow(/could not be cloned/);
});

it('a client with a connector of its own cannot be copied for a lease thread', () => {
  const client = clientOf({ Connector: Object as never });
  expect(() => routeOf({ client })).toThrow('the client has a connector of its own');
});

it('a client of a cluster without nodes cannot be copied for a lease thread', () => {
  const client = new Cluster([{ port: 1 }], { lazyConnect: true });
  expect(() => routeOf({ client })).toThrow('the cluster client has no nodes');
});
