import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { CHROMIUM, launch, openTab } from './browser.ts';
import { openWorld, type World } from './world.ts';

const opened: { world?: World; browser?: Browser } = {};

beforeAll(async () => {
  if (CHROMIUM === undefined) return;
  const [world, browser] = await Promise.all([openWorld(), launch()]);
  Object.assign(opened, { world, browser });
});

afterAll(async () => {
  await opened.browser?.close();
  await opened.world?.close();
});

test.skipIf(CHROMIUM === undefined)(
  'the dashboard shows queues, a task with exact numbers, and the wheels of a timer in Chromium',
  async () => {
    const { world, browser } = opened as { world: World; browser: Browser };
    const tab = await openTab(browser, world.url);
    await tab.sees('Queues (5)', 'imports', 'No server works on this queue');
    await tab.view('/queues/default/tasks/exact');
    await tab.sees('ledger:post', '12345678901234567890', '1.10', 'tenant-7');
    await tab.view('/timers');
    await tab.page.getByRole('img', { name: /^Wheels of requests: [\d\s]+ pending timers/ }).waitFor();
    expect(tab.problems).toEqual([]);
  },
);
