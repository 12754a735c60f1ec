import { expect, onTestFinished, test } from 'vitest';
import { CHROMIUM } from './browser.ts';
import { showWorld } from './world.ts';

test.skipIf(CHROMIUM === undefined)(
  'the dashboard shows queues, a task with exact numbers, and the wheels of a timer in Chromium',
  async () => {
    const { tab, close } = await showWorld();
    onTestFinished(close);
    await tab.sees('Queues (5)', 'imports', 'No server works on this queue');
    await tab.view('/queues/default/tasks/exact');
    await tab.sees('ledger:post', '12345678901234567890', '1.10', 'tenant-7');
    await tab.view('/timers');
    await tab.page.getByRole('img', { name: /^Wheels of requests: [\d\s]+ pending timers/ }).waitFor();
    expect(tab.problems).toEqual([]);
  },
);
