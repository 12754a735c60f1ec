import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { describe, expect, it } from 'vitest';
import { bundleProgram } from '../bundle-program.ts';
import { finished, spawnNode } from '../run-program.ts';
import { askRedis } from './ask-redis.ts';
import { RedisProcess } from './redis-process.ts';

it('the reason is reported if a server does not start', async () => {
  await expect(RedisProcess.start({ args: ['--maxmemory', 'much'] })).rejects.toThrow(
    /has not started: [^]*argument must be a memory value/,
  );
});

it('a server whose port another one has taken meanwhile does not start', async () => {
  const other = await RedisProcess.start();
  await expect(RedisProcess.start({ port: other.port })).rejects.toThrow(/has not started: [^]*in use/);
  await other.stop();
});

it('a paused server can be stopped, and leaves no folder', async () => {
  const server = await RedisProcess.start();
  server.pause();
  await server.stop();
  await expect(server.ask('PING')).rejects.toThrow('ECONNREFUSED');
  expect(existsSync(server.folder)).toBe(false);
});

describe('a server whose process of tests dies', () => {
  const starter = bundleProgram(new URL('start-and-stay.ts', import.meta.url));

  it.each(['SIGKILL', 'SIGINT'] as const)(
    'a server ends with its folder when the test process dies of %s',
    async (signal) => {
      const child = spawnNode([starter]);
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
    expect(await finished(spawnNode([starter, 'and-go']))).toMatchObject({ code: 0, stderr: '' });
  });
});
