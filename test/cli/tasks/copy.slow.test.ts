/** `escapement tasks copy`, as a process that is killed. */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Client, EmbeddedBroker, Task, type Broker } from 'escapement/tasks';
import type { RedisBroker } from 'escapement/tasks/redis';
import { checkBroker } from 'escapement/testing';
import { beforeEach, expect, onTestFinished, test } from 'vitest';
import { idsIn } from '../../conformance/broker/support.ts';
import { folderOfTest } from '../../folder.ts';
import { RedisProcess } from '../../redis/redis-process.ts';
import { redisForTest } from '../../tasks/broker/redis/setup.ts';
import { endOf, startCommand } from '../support/command.ts';
import { FakeStream, tasksCommand } from './support/tasks-command.ts';

const HOUR_MS = 3_600_000;
const PENDING = 6_000;
const SCHEDULED = 1_500;

let directory: string;
let redis: RedisBroker;
let url: string;
let folder: string;

beforeEach(async () => {
  directory = folderOfTest();
  ({ broker: redis, url } = await redisForTest());
  folder = join(directory, 'jobs');
});

/** Makes a folder with tasks that are pending, and others that are scheduled. */
async function fill(tasks = PENDING + SCHEDULED): Promise<void> {
  const broker = await EmbeddedBroker.open({ dataPath: folder, durability: 'os' });
  const client = new Client({ broker });
  const all = Array.from({ length: tasks }, (_, n) => {
    const at =
      n < PENDING ? {} : { processAt: HOUR_MS * 1_000 * Math.ceil(Date.now() / HOUR_MS / 1_000) + n * 1_000 };
    return { task: new Task('work', { n }), options: { taskId: `t${n}`, uniqueTtlMs: 100 * HOUR_MS, ...at } };
  });
  await client.enqueueMany(all);
  await broker.close();
}

async function copied(...words: string[]): Promise<unknown> {
  const { stdout, stderr, code } = await endOf(startCommand(['tasks', 'copy', ...words, '--json']));
  expect({ stderr, code }).toEqual({ stderr: '', code: 0 });
  return JSON.parse(stdout);
}

/** Kills a copy when a condition holds, which it checks all the time. */
async function killed(words: readonly string[], until: () => boolean | Promise<boolean>): Promise<void> {
  const command = startCommand(['tasks', 'copy', ...words]);
  const ended = endOf(command);
  while (command.exitCode === null && !(await until())) await sleep(1);
  command.kill('SIGKILL');
  expect(await ended).toMatchObject({ stderr: '', code: null });
}

async function ids(broker: Broker): Promise<unknown> {
  return { pending: await idsIn(broker, 'pending'), scheduled: await idsIn(broker, 'scheduled') };
}

const ALL = {
  pending: Array.from({ length: PENDING }, (_, n) => `t${n}`),
  scheduled: Array.from({ length: SCHEDULED }, (_, n) => `t${PENDING + n}`),
};

async function countInRedis(): Promise<number> {
  const [queue] = await redis.queues();
  if (queue === undefined) return 0;
  const { counts } = await redis.queueStats(queue);
  return counts.pending + counts.scheduled;
}

test('a copy from a folder to Redis and back, which is killed and made again, misses nothing and doubles nothing', async () => {
  await fill();
  for (const least of [500, 3_000]) {
    await killed([folder, url, '--merge'], async () => (await countInRedis()) > least);
  }
  const before = await countInRedis();
  expect(before).toBeLessThan(PENDING + SCHEDULED);
  expect(await copied(folder, url, '--merge')).toMatchObject({ added: PENDING + SCHEDULED - before });
  expect(await ids(redis)).toEqual(ALL);
  expect(await redis.repair('default', { apply: false })).toEqual([]);

  const back = join(directory, 'back');
  const segment = join(back, 'tasks.0000000001.segment');
  await killed([url, back], () => existsSync(segment) && readFileSync(segment).length > 250_000);
  expect(await copied(url, back, '--merge')).toMatchObject({ tasks: PENDING + SCHEDULED });
  const broker = await EmbeddedBroker.open({ dataPath: back });
  expect(await ids(broker)).toEqual(ALL);
  checkBroker(broker);
  const again = new Client({ broker }).enqueue(new Task('work', { n: 7 }), { uniqueTtlMs: 1_000 });
  await expect(again).rejects.toMatchObject({ code: 'ERR_TASK_DUPLICATE' });
  await broker.close();
});

test('a copy to a dump, which is killed and made again, leaves no part of a dump behind', async () => {
  await fill();
  const dump = join(directory, 'jobs.jsonl');
  await killed([folder, dump], () => existsSync(`${dump}.part`));
  expect(existsSync(dump)).toBe(false);
  expect(await copied(folder, dump)).toMatchObject({ queues: 1, tasks: PENDING + SCHEDULED });
  expect(existsSync(`${dump}.part`)).toBe(false);
  expect(await copied(dump, url)).toMatchObject({ added: PENDING + SCHEDULED });
  expect(await ids(redis)).toEqual(ALL);
});

test('the progress of a copy names Redis without its password', async () => {
  await fill(60_000); // a bar is shown after 300 ms
  const server = await RedisProcess.start({ args: ['--requirepass', 'secret'] });
  onTestFinished(() => server.stop());
  const target = server.url.replace('//', '//:secret@');
  const err = new FakeStream(true);
  expect(await tasksCommand(['copy', folder, target], { err })).toMatchObject({ code: 0 });
  expect(err.written).toContain(`${folder} to 127.0.0.1:`);
  expect(err.written).not.toContain('secret');
});

test('tasks copy refuses what it cannot copy, and names what is wrong', async () => {
  await fill(1);
  const other = join(directory, 'other');
  await new Client({ broker: redis }).enqueue(new Task('own'), { taskId: 'own' });
  writeFileSync(join(directory, 'file'), '');
  const refused = async (...words: string[]): Promise<string> => {
    const { stderr, code } = await endOf(startCommand(['tasks', 'copy', ...words]));
    expect(code).toBe(2);
    return stderr;
  };
  expect(await refused(folder, url)).toBe(
    'escapement: TO has tasks: with --merge they stay, and an interrupted copy goes on\n',
  );
  expect(await refused(other, url)).toBe(`escapement: ${other}: no such file or folder\n`);
  expect(await refused(folder, folder)).toContain('FROM and TO are the same');
  expect(await refused(folder, `${folder}/.`)).toContain('FROM and TO are the same');
  expect(await refused(folder, directory)).toContain('other files are in this folder');
  expect(await refused('http://127.0.0.1:1', other)).toContain('the HTTP API has not everything of a task');
  expect(await refused(folder, other, '--path', folder)).toContain('needs neither --uri nor --path');
  expect(await refused(folder, join(directory, 'file'))).toMatch(/exists already$/m);
  const broker = await EmbeddedBroker.open({ dataPath: folder });
  expect(await refused(folder, other)).toContain(`process ${process.pid} on`);
  await broker.close();
});
