/** The command `escapement dashboard` with a login, in Chromium, on tasks in each place where they may be. */
import { once } from 'node:events';
import type { Browser } from 'playwright-core';
import { Client, EmbeddedBroker, Inspector, Task, type Broker } from 'escapement/tasks';
import { tasksHandler } from 'escapement/tasks/http';
import { RedisBroker } from 'escapement/tasks/redis';
import { afterAll, beforeAll, describe, expect, inject, onTestFinished, test } from 'vitest';
import { startCommand } from '../../cli/support/command.ts';
import { folderOfTest } from '../../folder.ts';
import { listen } from '../../listen.ts';
import { freshDatabase } from '../../redis/redis-case.ts';
import { CHROMIUM, launch, openTab } from './browser.ts';

/** Adds tasks, one of which is archived with an error. Returns arguments of the command. */
type Place = () => Promise<readonly string[]>;

async function fill(broker: Broker): Promise<void> {
  const client = new Client({ broker });
  for (let n = 0; n < 40; n++) await client.enqueue(new Task('mail:send', { to: `user-${n}` }));
  await client.enqueue(new Task('payment:capture', { invoice: 'I-4711' }), { taskId: 'payment' });
  await new Inspector({ broker }).archiveTask('default', 'payment');
}

const folder: Place = async () => {
  const dataPath = folderOfTest();
  const broker = await EmbeddedBroker.open({ dataPath });
  await fill(broker);
  await broker.close();
  return ['--path', dataPath, '--write'];
};

const redis: Place = async () => {
  const { url, dispose } = await freshDatabase();
  const broker = new RedisBroker({ url });
  await fill(broker);
  await broker.close();
  onTestFinished(dispose);
  return ['-u', url];
};

const anotherProcess: Place = async () => {
  const broker = await EmbeddedBroker.open();
  await fill(broker);
  onTestFinished(() => broker.close());
  return ['-u', `http://127.0.0.1:${await listen(tasksHandler({ broker }))}`];
};

const PLACES: readonly (readonly [string, Place])[] = [
  ['a folder', folder],
  ['the HTTP API of another process', anotherProcess],
  ...(inject('redis').isThere ? [['Redis', redis] as const] : []),
];

/** Starts the command for the length of the test. Returns its URL. */
async function show(...words: readonly string[]): Promise<string> {
  const child = startCommand(['dashboard', '--port', '0', '--password', 'sesame', ...words]);
  onTestFinished(async () => {
    const ended = once(child, 'close');
    child.kill('SIGTERM');
    await ended;
  });
  const [line] = (await once(child.stdout as NodeJS.ReadableStream, 'data')) as [Buffer];
  return /^http:\S+/.exec(line.toString())?.[0] ?? `no URL in ${line.toString()}`;
}

describe.skipIf(CHROMIUM === undefined)('the dashboard of the command', () => {
  let browser: Browser;
  beforeAll(async () => {
    browser = await launch();
    await browser.newContext({ httpCredentials: { username: 'admin', password: 'sesame' } });
  });
  afterAll(() => browser.close());

  test.each(PLACES)(
    'the dashboard of the command finds a task in %s and runs it again, after a login',
    async (_, place) => {
      const url = await show(...(await place()));
      expect((await fetch(url)).status).toBe(401);
      const tab = await openTab(browser, url);
      await tab.sees('Queues (1)', 'No server works on this queue');
      await tab.view('/search?text=I-4711');
      await tab.sees('1 match', 'payment:capture');
      await tab.view('/queues/default/tasks/payment');
      await tab.sees('Archived');
      await tab.press('Run now');
      await tab.sees('Pending');
      await tab.view('/queues/default?state=pending');
      await tab.sees('41 tasks');
      expect(tab.problems).toEqual([]);
    },
  );

  test('the dashboard of the command shows no button for a change with --read-only', async () => {
    const tab = await openTab(browser, await show(...(await folder()), '--read-only'));
    await tab.view('/queues/default/tasks/payment');
    await tab.sees('Archived', 'I-4711');
    expect(await tab.page.getByRole('button', { name: /Run now|Delete|Pause/ }).count()).toBe(0);
    await tab.view('/queues/default?state=pending');
    await tab.sees('40 tasks');
    expect(await tab.page.getByRole('button', { name: /Delete|Archive|Pause/ }).count()).toBe(0);
  });
});
