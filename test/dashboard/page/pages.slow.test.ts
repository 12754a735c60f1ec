import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Browser, Locator } from 'playwright-core';
import { Task } from 'escapement/tasks';
import { beforeAll, describe, expect, test } from 'vitest';
import { buildWheelPage } from '../../../build-page.ts';
import { folderOfTest } from '../../folder.ts';
import { CHROMIUM, openTab, seriousProblems, type Tab } from './browser.ts';
import { showWorld, HOSTILE, type World } from './world.ts';

const DAY_MS = 86_400_000;

describe.skipIf(CHROMIUM === undefined)('pages of the dashboard', () => {
  let world: World;
  let browser: Browser;
  let tab: Tab;

  beforeAll(async () => {
    const shown = await showWorld();
    ({ world, browser, tab } = shown);
    return shown.close;
  });

  const hostilePath = encodeURIComponent(HOSTILE);

  /** Address of each view, and what it shows. */
  const VIEWS: readonly (readonly [string, readonly (string | RegExp)[]])[] = [
    ['/', ['Queues (5)', 'No server works on this queue', 'imports', 'paused']],
    ['/queues/default?state=retry', ['image:resize', 'ECONNRESET', 'Run now all']],
    ['/queues/mail?state=aggregating', ['team-0', 'team-1']],
    ['/queues/mail?state=aggregating&group=team-1', ['email:digest', 'all groups']],
    ['/queues/mail?view=limits', ['at most 8 at a time', '20 every 1 min', 'Save limits']],
    ['/queues/imports?view=keys', ['tenant-0']],
    ['/queues/default?view=days', ['processed']],
    ['/queues/default?state=archived', ['payment:capture', 'card declined']],
    ['/queues/default/tasks/exact', ['ledger:post', '12345678901234567890', '1.10', 'Retention']],
    ['/queues/default/tasks/binary', ['00 ff 10 20 41 42', 'binary', '0 of 25 retries']],
    ['/queues/reports/tasks/long', ['video:transcode', 'Progress', 'Cancel run', 'held by its server']],
    ['/queues/default/tasks/none', ['There is no such task any more']],
    [`/queues/${hostilePath}/tasks/${hostilePath}`, ['<img src=x onerror=alert(1)>']],
    ['/search', ['What are you looking for?']],
    ['/search?text=ECONNRESET&state=retry', ['image:resize', '8 matches']],
    ['/servers', ['default: 3', 'video:transcode']],
    ['/schedules', ['At 09:30, Monday through Friday', 'At 00:00, every day', 'Every 2s']],
    ['/charts', ['Throughput', 'Processed']],
    ['/charts?span=day', [/sample|Throughput/]],
    ['/health', ['Event loop delay', 'Uptime']],
    ['/timers', ['Level 1', 'Lateness', 'Pending over the last five minutes']],
    ['/purgatories', ['partition-0']],
    ['/work-queues', ['default/db-3']],
    ['/disk-queues', ['cursor at', 'segments']],
    ['/nowhere', ['There is no such page']],
  ];

  test('each page shows what it is for, and axe-core finds nothing serious on it in the light and the dark theme', async () => {
    const found: string[] = [];
    for (const [hash, texts] of VIEWS) {
      await tab.view(hash);
      await tab.sees(...texts);
      await tab.page.emulateMedia({ colorScheme: 'light' });
      found.push(...(await seriousProblems(tab.page)).map((problem) => `${hash}: ${problem}`));
      await tab.page.emulateMedia({ colorScheme: 'dark' });
      found.push(
        ...(await seriousProblems(tab.page, ['color-contrast'])).map(
          (problem) => `${hash}, dark: ${problem}`,
        ),
      );
    }
    expect(found).toEqual([]);
    expect(tab.problems).toEqual([]);
  });

  test('no page of the dashboard scrolls sideways on a phone', async () => {
    await tab.page.setViewportSize({ width: 360, height: 700 });
    const wide: string[] = [];
    for (const [hash, [text = '']] of VIEWS) {
      await tab.view(hash);
      await tab.sees(text);
      const overflow = await tab.page.evaluate('document.documentElement.scrollWidth - innerWidth');
      if (overflow !== 0) wide.push(`${hash} by ${String(overflow)} px`);
    }
    await tab.page.setViewportSize({ width: 1280, height: 800 });
    expect(wide).toEqual([]);
  });

  test('payloads, names and ids with markup stay text', async () => {
    await tab.view(`/queues/${hostilePath}/tasks/${hostilePath}`);
    await tab.sees('alert(2)');
    expect(await tab.page.locator('main img, main script').count()).toBe(0);
    expect(tab.problems).toEqual([]);
  });

  test('the buttons of a queue pause it, and run, archive or delete all of its tasks in a state after a question', async () => {
    await tab.view('/queues/default');
    await tab.press('Pause');
    await tab.page.getByRole('button', { name: 'Resume', exact: true }).waitFor();
    await tab.sees('paused');
    expect((await world.inspector.getQueueInfo('default')).paused).toBe(true);
    await tab.press('Resume');
    await tab.page.getByRole('button', { name: 'Pause', exact: true }).waitFor();
    await tab.view('/queues/mail?state=scheduled');
    await tab.press('Archive all');
    await tab.page.getByRole('dialog').getByText('Archive: all 8 scheduled tasks?').waitFor();
    await tab.confirm('Archive all');
    await tab.sees('No scheduled tasks');
    expect((await world.inspector.getQueueInfo('mail')).archived).toBe(8);
  });

  test('checked rows are changed together after a question, and the rest stays', async () => {
    await tab.view('/queues/mail?state=archived');
    await tab.sees('8 tasks');
    const boxes = tab.page.getByRole('checkbox', { name: /^Select task/ });
    await boxes.nth(0).check();
    await boxes.nth(2).check();
    await tab.sees('2 tasks selected');
    await tab.page
      .getByRole('region', { name: 'Selected tasks' })
      .getByRole('button', { name: 'Delete' })
      .click();
    await tab.confirm('Delete');
    await tab.sees('6 tasks');
    expect((await world.inspector.getQueueInfo('mail')).archived).toBe(6);
  });

  test('the buttons of a task run, archive, delete and cancel it', async () => {
    await world.client.enqueue(new Task('note:add', { n: 1 }), {
      taskId: 'note',
      queue: 'imports',
      processInMs: DAY_MS,
    });
    await tab.view('/queues/imports/tasks/note');
    await tab.press('Archive');
    await tab.confirm('Archive');
    await tab.page.locator('h1').getByText('Archived').waitFor();
    await tab.press('Run now');
    await tab.page.locator('h1').getByText('Pending').waitFor();
    await tab.press('Delete');
    await tab.confirm('Delete');
    await tab.sees('order:export');
    await expect(world.inspector.getTaskInfo('imports', 'note')).rejects.toThrow(/note/);
    await tab.view('/queues/reports/tasks/long');
    await tab.press('Cancel run');
    await tab.confirm('Cancel run');
    await tab.page.locator('h1').getByText('Retry').waitFor();
  });

  test('the form of limits sets them, and removes them after a question', async () => {
    await tab.view('/queues/imports?view=limits');
    await tab.sees('no limit');
    const queue = tab.page.getByRole('group', { name: 'The queue as a whole' });
    await queue.getByLabel('Tasks at a time').fill('3');
    await queue.getByLabel('Tasks started').fill('10');
    await tab.press('Save limits');
    await tab.sees('at most 3 at a time, 10 every 1 s');
    await queue.getByLabel('Tasks at a time').fill('');
    await tab.press('Remove all limits');
    await tab.confirm('Remove limits');
    await tab.page.getByRole('button', { name: 'Remove all limits' }).waitFor({ state: 'detached' });
  });

  test('a search finds tasks while it scans, and changes everything that matches after a question with the count', async () => {
    await tab.view('/search');
    await tab.page.getByRole('searchbox').fill('order:export');
    await tab.page.keyboard.press('Enter');
    await tab.sees('60 matches', 'tasks scanned');
    await tab.page.getByRole('link', { name: 'Next' }).click();
    await tab.sees('Page 2 of 2');
    await tab.page.waitForURL(/text=order%3Aexport.*page=2|page=2.*text=order%3Aexport/);
    await tab.press('Archive all 60');
    await tab.page.getByRole('dialog').getByText('Archive: all 60 tasks that match?').waitFor();
    await tab.page.getByRole('dialog').getByRole('button', { name: 'Archive all' }).click();
    await tab.page.getByRole('dialog').getByText('Archived: 60 tasks.').waitFor();
    await tab.confirm('Close');
    expect((await world.inspector.getQueueInfo('imports')).archived).toBe(60);
  });

  test('Tab, Enter and Space lead from the overview to a task of a queue, select it, open it and answer its question', async () => {
    const { keyboard } = tab.page;
    const main = tab.page.locator('main');
    const reach = async (element: Locator): Promise<void> => {
      await element.waitFor();
      for (let presses = 0; presses < 100; presses++) {
        if ((await element.and(tab.page.locator(':focus')).count()) > 0) return;
        await keyboard.press('Tab');
      }
      throw new Error(`Tab does not lead to ${String(element)}`);
    };
    await world.client.enqueue(new Task('email:reminder'), { queue: 'mail', processInMs: 3_600_000 });
    await tab.view('/');
    await tab.page.reload();
    await reach(main.getByRole('link', { name: 'mail', exact: true }));
    await keyboard.press('Enter');
    await tab.page.locator('h1', { hasText: 'mail' }).waitFor();
    await reach(main.getByRole('link', { name: /^Scheduled/ }));
    await keyboard.press('Enter');
    await tab.page.waitForURL(/state=scheduled/);
    await reach(main.getByRole('checkbox', { name: /^Select task/ }).first());
    await keyboard.press('Space');
    await tab.sees('1 task selected');
    await reach(main.locator('tbody').getByRole('link').first());
    await keyboard.press('Enter');
    await tab.page.locator('h1', { hasText: 'Scheduled' }).waitFor();
    await reach(main.getByRole('button', { name: 'Delete' }));
    await keyboard.press('Enter');
    await reach(tab.page.getByRole('dialog').getByRole('button', { name: 'Keep as it is' }));
    await keyboard.press('Space');
    await tab.page.getByRole('dialog').waitFor({ state: 'detached' });
  });

  test('the chosen theme is kept for the next visit', async () => {
    await tab.view('/timers');
    await tab.page.getByLabel('Theme').selectOption('dark');
    await tab.page.reload();
    await tab.sees('Timers');
    expect(await tab.page.evaluate('getComputedStyle(document.body).colorScheme')).toBe('dark');
    await tab.page.getByLabel('Theme').selectOption('system');
  });

  test('the wheels as a file of their own run a timer without a server', async () => {
    const file = join(folderOfTest(), 'wheels.html');
    await writeFile(file, await buildWheelPage());
    const alone = await openTab(browser, `file://${file}`);
    const fired = alone.page.locator('.figure', { hasText: 'Fired' }).locator('.figure-value');
    await expect.poll(async () => Number(await fired.textContent())).toBeGreaterThan(2);
    await alone.press('Cancel all');
    expect(await seriousProblems(alone.page)).toEqual([]);
    expect(alone.problems).toEqual([]);
    await alone.page.close();
  });
});
