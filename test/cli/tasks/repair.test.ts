import { Redis } from 'ioredis';
import { RedisBroker } from 'escapement/tasks/redis';
import { describe, expect, it, onTestFinished } from 'vitest';
import { freshDatabase } from '../../redis/redis-case.ts';
import { openTarget, tasksCommand } from './support/tasks-command.ts';
import { newTask } from '../../conformance/broker/support.ts';

/** A queue with a task, an id of none, and a task in no list. */
async function damaged(): Promise<{ url: string; redis: Redis }> {
  const database = await freshDatabase();
  const broker = new RedisBroker({ url: database.url });
  const redis = new Redis(database.url);
  onTestFinished(async () => {
    await broker.close();
    redis.disconnect();
    await database.dispose();
  });
  await broker.enqueue(newTask({ id: 'fine' }));
  await broker.enqueue(newTask({ id: 'lost' }));
  await redis.lrem('asynq:{default}:pending', 0, 'lost');
  await redis.lpush('asynq:{default}:pending', 'gh\u001bost');
  return { url: database.url, redis };
}

describe('escapement tasks repair', () => {
  it('lists defects, and changes nothing', async () => {
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

  it('repairs defects with --apply, and lists them as JSON', async () => {
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

  it('is not available over the HTTP API', async () => {
    const { command } = await openTarget('http');
    expect(await command('repair')).toMatchObject({
      stderr: expect.stringContaining('repairing queues is not available over the HTTP API') as string,
      code: 2,
    });
  });
});
