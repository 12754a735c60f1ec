import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { askRedis } from './ask-redis.ts';
import { RedisProcess } from './redis-process.ts';

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
  it('answers as soon as it is started', async () => {
    const server = await start();
    expect(await server.ask('PING', 'SET key value', 'STRLEN key')).toEqual(['+PONG', '+OK', ':5']);
  });

  it('runs where nobody else does', async () => {
    const [one, other] = await Promise.all([start(), start()]);
    await one.ask('SET key value');
    expect(await other.ask('EXISTS key')).toEqual([':0']);
  });

  it('takes arguments', async () => {
    const server = await start('--requirepass', 'secret');
    expect(await server.ask('AUTH secret', 'PING')).toEqual(['+OK', '+PONG']);
    expect(await server.ask('PING')).toEqual([expect.stringMatching(/^-NOAUTH/)]);
  });

  it('says why it does not start', async () => {
    await expect(RedisProcess.start({ args: ['--maxmemory', 'much'] })).rejects.toThrow(
      /has not started: [^]*argument must be a memory value/,
    );
  });

  it('is gone when it is killed, and comes back empty on the same port', async () => {
    const server = await start();
    await server.ask('SET key value');
    await server.kill('SIGTERM');
    await expect(server.ask('PING')).rejects.toThrow('ECONNREFUSED');
    await server.start();
    expect(await server.ask('EXISTS key')).toEqual([':0']);
  });

  it('does nothing while it is paused', async () => {
    const server = await start();
    server.pause();
    const answer = server.ask('PING');
    const first = await Promise.race([answer, new Promise((resolve) => setTimeout(resolve, 50, 'nothing'))]);
    expect(first).toBe('nothing');
    server.resume();
    expect(await answer).toEqual(['+PONG']);
  });

  it('ends while it is paused, and leaves no folder', async () => {
    const server = await start();
    server.pause();
    await server.stop();
    await expect(server.ask('PING')).rejects.toThrow('ECONNREFUSED');
    expect(existsSync(server.folder)).toBe(false);
  });
});

describe('a server whose process of tests dies', () => {
  const starter = fileURLToPath(new URL('start-and-stay.ts', import.meta.url));

  it.each(['SIGKILL', 'SIGINT'] as const)('dies of %s too, with its folder', async (signal) => {
    const child = spawn(process.execPath, ['--import', 'tsx', starter], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const [line] = (await once(createInterface({ input: child.stdout }), 'line')) as [string];
    const { port, folder } = JSON.parse(line) as { port: number; folder: string };
    expect(await askRedis(port, ['PING'])).toEqual(['+PONG']);

    child.kill(signal);
    await once(child, 'exit');
    await vi.waitFor(async () => {
      await expect(askRedis(port, ['PING'])).rejects.toThrow('ECONNREFUSED');
      expect(existsSync(folder)).toBe(false);
    }, 10_000);
  });

  it('does not keep it alive', async () => {
    const child = spawn(process.execPath, ['--import', 'tsx', starter, 'and-go'], { stdio: 'ignore' });
    expect(await once(child, 'exit')).toEqual([0, null]);
  });
});
