import { createServer } from 'node:http';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { describe, expect, it } from 'vitest';
import { dashboard } from '../../../src/dashboard.ts';
import { CHROMIUM, launch, openTab, type Tab } from '../../dashboard/page/browser.ts';
import { describeEachGo } from './support/describe-each-go.ts';
import type { World } from './support/world.ts';

/** A tab of Chromium with the dashboard, for the length of the test. */
async function openDashboard(world: World): Promise<Tab> {
  const board = dashboard({ broker: world.broker });
  const server = createServer(board).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const browser = await launch();
  world.atEndOfTest(async () => {
    await browser.close();
    board.close();
    server.closeAllConnections();
    server.close();
  });
  return openTab(browser, `http://127.0.0.1:${(server.address() as AddressInfo).port}/`);
}

describe.skipIf(CHROMIUM === undefined)('the dashboard, in Chromium', () => {
  describeEachGo(
    (world) => {
      it('the dashboard in Chromium shows the tasks, runs and servers of asynq, and runs a task again that failed there', async () => {
        const queue = world().newQueue();
        const { ID: failing } = await world().go.enqueue({
          type: 'fail',
          queue,
          maxRetry: 0,
          payload: 'a-1',
        });
        const { ID: hanging } = await world().go.enqueue({ type: 'hang', queue, maxRetry: 0 });
        await world().serveInGo(queue);
        await world().go.heard('started', hanging);
        await world().untilNodeSays(queue, failing, 'archived');
        const tab = await openDashboard(world());
        await tab.sees(queue);
        await tab.view('/servers');
        await tab.sees(hanging, `${queue}: 1`);
        await tab.view('/search?text=boom');
        await tab.sees('1 match', failing);
        await tab.view(`/queues/${queue}/tasks/${failing}`);
        await tab.sees('Archived', 'boom: ä', 'a-1');
        await tab.press('Run now');
        await tab.view(`/queues/${queue}/tasks/${hanging}`);
        await tab.press('Cancel run');
        await tab.confirm('Cancel run');
        await world().go.heard('stopped', hanging);
        await world().untilGoSays(queue, failing, 'archived');
        await tab.view(`/queues/${queue}?view=days`);
        await tab.sees('3'); // three runs, all of which failed
        expect(tab.problems).toEqual([]);
      });
    },
    ['0.26.0'],
  );
});
