import { cpSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { folderOfTest } from '../../folder.ts';
import { freePort } from '../../free-port.ts';
import { acceptConnections } from '../../listen.ts';
import { freshDatabase } from '../../redis/redis-case.ts';
import { RedisProcess } from '../../redis/redis-process.ts';
import { COMMAND, endOf, startCommand, startCopy } from '../support/command.ts';
import { refusal } from './support/tasks-command.ts';

/** Runs the built command. */
function tasks(env: Readonly<Record<string, string>>, ...words: string[]): ReturnType<typeof endOf> {
  return endOf(startCommand(['tasks', ...words], env));
}

async function redis(...args: string[]): Promise<RedisProcess> {
  const server = await RedisProcess.start({ args });
  onTestFinished(() => server.stop());
  return server;
}

describe('escapement tasks, built, with Redis', () => {
  it('the command prints what Redis reports about itself', async () => {
    const database = await freshDatabase();
    onTestFinished(() => database.dispose());
    const env = { REDIS_URL: database.url };
    const { redis } = JSON.parse((await tasks(env, 'stats', '--json')).stdout) as {
      redis: Record<string, string>;
    };
    expect(redis).toMatchObject({ redis_mode: 'standalone', uptime_in_days: '0' });
    const { stdout } = await tasks(env, 'stats');
    expect(stdout).toContain('peak memory');
    expect(stdout).toContain(redis['redis_version']);
  });

  it('the command accepts the password from each of its sources', async () => {
    const server = await redis('--requirepass', 's3/cr@t');
    const uri = `127.0.0.1:${server.port}`;
    expect((await tasks({}, 'stats', '-u', uri, '-p', 's3/cr@t')).code).toBe(0);
    expect((await tasks({ ESCAPEMENT_URI: uri, ESCAPEMENT_PASSWORD: 's3/cr@t' }, 'stats')).code).toBe(0);
    expect((await tasks({}, 'stats', '-u', `redis://:s3%2Fcr%40t@${uri}`)).code).toBe(0);
    const without = await tasks({}, 'stats', '-u', uri);
    expect(without).toMatchObject({ stdout: '', code: 2 });
    expect(without.stderr).toMatch(/^escapement: cannot reach Redis at 127\.0\.0\.1:\d+: NOAUTH [^\n]*\n$/);
    const wrong = await tasks({}, 'stats', '-u', `redis://:guess@${uri}`);
    expect(wrong.stderr).toMatch(/^escapement: cannot reach Redis at 127\.0\.0\.1:\d+: WRONGPASS [^\n]*\n$/);
    expect(wrong.stderr).not.toContain('guess');
  });

  it('the command reports at once, in one line, that Redis is unreachable', async () => {
    const port = await freePort();
    const words = ['queue', 'pause', 'a', 'b', '-u', `redis://u:secret@127.0.0.1:${port}`];
    expect(await tasks({}, ...words)).toEqual(
      refusal(`cannot reach Redis at 127.0.0.1:${port}: connect ECONNREFUSED 127.0.0.1:${port}`),
    );
    const wrong = await tasks({}, 'stats', '-u', 'redis://u:secret@127.0.0.1:99999');
    expect(wrong.stderr).toMatch(/^escapement: --uri must be [^\n]*\n$/);
    expect(wrong.stderr).not.toContain('secret');
    expect(wrong.code).toBe(2);
  });

  it('the command gives up on a Redis that does not respond, or when it is interrupted', async () => {
    const late = tasks({}, 'stats', '-u', `127.0.0.1:${await acceptConnections(() => undefined)}`);
    let isConnected = false;
    const port = await acceptConnections(() => (isConnected = true));
    const child = startCommand(['tasks', 'stats', '-u', `127.0.0.1:${port}`]);
    const result = endOf(child);
    await expect.poll(() => isConnected).toBe(true);
    child.kill('SIGINT');
    expect(await result).toMatchObject({ stderr: '', code: 130 });
    expect((await late).stderr).toMatch(/^escapement: cannot reach Redis at 127\.0\.0\.1:\d+: [^\n]+\n$/);
    expect((await late).code).toBe(2);
  });

  it('the command reports that ioredis is not installed; everything else works', async () => {
    const folder = folderOfTest();
    cpSync(join(COMMAND, '..'), join(folder, 'dist'), { recursive: true });
    cpSync(join(COMMAND, '../../package.json'), join(folder, 'package.json'));
    const run = (...words: string[]): ReturnType<typeof endOf> =>
      endOf(startCopy(join(folder, 'dist/cli.js'), words));
    expect(await run('tasks', 'stats')).toEqual(
      refusal('Redis needs a package that is not installed: npm install ioredis'),
    );
    const other = await run('tasks', 'stats', '-u', `http://127.0.0.1:${await freePort()}`);
    expect(other.stderr).toContain('ECONNREFUSED');
    expect(await run('tasks', 'task', 'ls', '--help')).toMatchObject({ stderr: '', code: 0 });
  });
});
