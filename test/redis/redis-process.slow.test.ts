import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { bundleProgram } from '../bundle-program.ts';
import { askRedis } from './ask-redis.ts';
import { RedisCluster } from './redis-cluster.ts';
import { RedisProcess } from './redis-process.ts';
import { RedisSentinels } from './redis-sentinels.ts';
import { withRedis } from './with-redis.ts';

const servers: RedisProcess[] = [];

afterEach(async () => {
  await Promise.all(servers.splice(0).map((server) => server.stop()));
});

async function start(...args: string[]): Promise<RedisProcess> {
  const server = await RedisProcess.start({ args });
  servers.push(server);
  return server;
}

describe('a server of our own', () => {
  it('a started server answers', async () => {
    const server = await start();
    expect(await server.ask('PING', 'SET key value', 'STRLEN key')).toEqual(['+PONG', '+OK', ':5']);
  });

  it('two servers have different ports and folders', async () => {
    const [one, other] = await Promise.all([start(), start()]);
    await one.ask('SET key value');
    expect(await other.ask('EXISTS key')).toEqual([':0']);
  });

  it('a server is started with arguments', async () => {
    const server = await start('--requirepass', 'secret');
    expect(await server.ask('AUTH secret', 'PING')).toEqual(['+OK', '+PONG']);
    expect(await server.ask('PING')).toEqual([expect.stringMatching(/^-NOAUTH/)]);
  });

  it('the reason is reported if a server does not start', async () => {
    await expect(RedisProcess.start({ args: ['--maxmemory', 'much'] })).rejects.toThrow(
      /has not started: [^]*argument must be a memory value/,
    );
  });

  it('a killed server can be started again, empty, on the same port', async () => {
    const server = await start();
    await server.ask('SET key value');
    await server.kill('SIGTERM');
    await expect(server.ask('PING')).rejects.toThrow('ECONNREFUSED');
    await server.start();
    expect(await server.ask('EXISTS key')).toEqual([':0']);
  });

  it('a paused server does not answer', async () => {
    const server = await start();
    server.pause();
    const answer = server.ask('PING');
    const first = await Promise.race([answer, new Promise((resolve) => setTimeout(resolve, 50, 'nothing'))]);
    expect(first).toBe('nothing');
    server.resume();
    expect(await answer).toEqual(['+PONG']);
  });

  it('a paused server can be stopped, and leaves no folder', async () => {
    const server = await start();
    server.pause();
    await server.stop();
    await expect(server.ask('PING')).rejects.toThrow('ECONNREFUSED');
    expect(existsSync(server.folder)).toBe(false);
  });
});

describe('a server whose process of tests dies', () => {
  const starter = bundleProgram(new URL('start-and-stay.ts', import.meta.url));

  it.each(['SIGKILL', 'SIGINT'] as const)(
    'a server ends with its folder when the test process dies of %s',
    async (signal) => {
      const child = spawn(process.execPath, [starter], {
        stdio: ['ignore', 'pipe', 'inherit'],
      });
      const [line] = (await once(createInterface({ input: child.stdout }), 'line')) as [string];
      const { port, folder } = JSON.parse(line) as { port: number; folder: string };
      expect(await askRedis(port, ['PING'])).toEqual(['+PONG']);

      child.kill(signal);
      await once(child, 'exit');
      await expect.poll(() => askRedis(port, ['PING']).catch(String)).toContain('ECONNREFUSED');
      await expect.poll(() => existsSync(folder)).toBe(false);
    },
  );

  it('a server does not keep the test process alive', async () => {
    const child = spawn(process.execPath, [starter, 'and-go'], { stdio: 'ignore' });
    expect(await once(child, 'exit')).toEqual([0, null]);
  });
});

describe('sentinels of our own', () => {
  let redis: RedisSentinels;

  beforeAll(async () => {
    redis = await RedisSentinels.start();
  }, 30_000);
  afterAll(() => redis.stop());

  it('sentinels make the replica the primary on request', async () => {
    const before = await redis.primary();
    await redis.failover();
    expect(await redis.primary()).not.toBe(before);
  });
});

describe('a cluster of our own', () => {
  let redis: RedisCluster;

  beforeAll(async () => {
    redis = await RedisCluster.start();
  }, 30_000);
  afterAll(() => redis.stop());

  it('a cluster has each slot on one node', async () => {
    const answers = await Promise.allSettled(
      redis.nodes.map(({ url }) => withRedis(url, (node) => node.set('key', 'value'))),
    );
    expect(answers.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
  });
});
