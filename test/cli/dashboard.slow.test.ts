/** `escapement dashboard --demo`, in a process of its own. */
import { once } from 'node:events';
import { readdirSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { expect, test } from 'vitest';
import type {
  QueueDetailJson,
  RuntimeJson,
  ScheduleJson,
  ServerJson,
} from '../../src/dashboard/dashboard-json.ts';
import { startCommand } from './support/command.ts';

const folders = (): string[] => readdirSync(tmpdir()).filter((name) => name.startsWith('escapement-demo-'));

test.each(['SIGINT', 'SIGTERM'] as const)(
  'the demo shows queues, servers, schedules and every part of a process, and leaves nothing behind after %s',
  async (signal) => {
    const before = folders();
    const child = startCommand(['dashboard', '--demo', '--port', '0']);
    const ended = once(child, 'close');
    const [line] = (await once(child.stdout as NodeJS.ReadableStream, 'data')) as [Buffer];
    const [, url = ''] = /^(http:\/\/127\.0\.0\.1:\d+\/) shows Demo shop/.exec(line.toString()) ?? [];
    const read = async <T>(path: string): Promise<T> =>
      (await (await fetch(`${url}api/${path}`)).json()) as T;
    await expect
      .poll(async () => (await read<QueueDetailJson>('queues/mail')).queue.processed)
      .toBeGreaterThan(0);
    expect(folders().length).toBeGreaterThan(before.length);
    expect((await read<QueueDetailJson>('queues/reports')).queue.paused).toBe(true);
    expect((await read<QueueDetailJson>('queues/exports')).queue.hasServer).toBe(false);
    expect((await read<QueueDetailJson>('queues/webhooks')).limits?.perKey?.concurrency).toBe(1);
    expect(await read<ServerJson[]>('servers')).toHaveLength(2);
    expect((await read<ScheduleJson[]>('schedules')).length).toBeGreaterThan(2);
    await expect
      .poll(async () => (await read<RuntimeJson>('runtime')).purgatories[0]?.keys.length)
      .toBeGreaterThan(0);
    const { timers, workQueues, diskQueues } = await read<RuntimeJson>('runtime');
    expect(timers.find(({ name }) => name === 'sessions')?.size).toBeGreaterThanOrEqual(40_000);
    expect(workQueues.map(({ name }) => name)).toEqual(['contacts']);
    expect(diskQueues[0]?.segments.length).toBeGreaterThan(1);
    child.kill(signal);
    expect(await ended).toEqual([0, null]);
    expect(folders()).toEqual(before);
  },
);
