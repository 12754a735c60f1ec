import type { Browser } from 'playwright-core';
import { Task } from 'escapement/tasks';
import { beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest';
import { CHROMIUM, openTab, type Tab } from './browser.ts';
import { showWorld, type World } from './world.ts';

const NO_MORE_MS = 2_500;

/** Waits until the server has the requests that a page has sent: another one, which it sends after them, is answered. */
function untilSent({ page }: Tab): Promise<unknown> {
  return page.evaluate("fetch('api/health').then(({ status }) => status)");
}

describe.skipIf(CHROMIUM === undefined)('live pages of the dashboard', () => {
  let world: World;
  let browser: Browser;
  let tab: Tab;

  beforeAll(async () => {
    const shown = await showWorld({ rootPath: '/ops/board' });
    ({ world, browser, tab } = shown);
    return shown.close;
  });

  const streams = (): number => world.requests.filter((request) => request.endsWith('/api/live')).length;
  const setVisibility = (state: 'hidden' | 'visible', { page }: Tab = tab): Promise<unknown> =>
    page.evaluate(
      `Object.defineProperty(document, 'visibilityState', { value: '${state}', configurable: true });
       document.dispatchEvent(new Event('visibilitychange'));`,
    );

  test('a page under a prefix follows what happens', async () => {
    await tab.sees('Queues (5)');
    await world.client.enqueue(new Task('one:more', {}), { queue: 'sixth', processInMs: 60_000 });
    await tab.sees('Queues (6)', 'sixth');
    expect(tab.problems).toEqual([]);
  });

  test('several tabs share one stream, and another tab takes over when the one that has it is closed', async () => {
    const others = [await openTab(browser, world.url), await openTab(browser, world.url)];
    for (const other of others) await other.sees('Queues (6)');
    expect(streams()).toBe(1);
    await tab.page.close();
    [tab] = others as [Tab, Tab];
    await world.client.enqueue(new Task('one:more', {}), { queue: 'seventh', processInMs: 60_000 });
    for (const other of others) await other.sees('Queues (7)');
    expect(streams()).toBe(2);
    await others[1]?.page.close();
  });

  test('a hidden tab requests nothing, and follows again when it is shown', async () => {
    await tab.view('/queues/default');
    await tab.sees('default');
    await setVisibility('hidden');
    await untilSent(tab);
    const before = world.requests.length;
    await tab.page.waitForTimeout(NO_MORE_MS);
    expect(world.requests.slice(before)).toEqual([]);
    await setVisibility('visible');
    await expect.poll(() => world.requests.length).toBeGreaterThan(before + 1);
  });

  test('a lost connection is reported, and the page recovers by itself', async () => {
    await tab.view('/');
    const restore = await world.cutOff();
    await tab.sees('The server of this dashboard cannot be reached.');
    await restore();
    await tab.page
      .getByText('The server of this dashboard cannot be reached.')
      .waitFor({ state: 'detached' });
    await tab.sees('Queues (7)');
  });

  test('a tab that is shown while the connection is lost reports that at once', async () => {
    const other = await openTab(browser, world.url);
    await other.sees('Queues (7)');
    const restore = await world.cutOff();
    await other.sees('The server of this dashboard cannot be reached.');
    const removed = `new Promise((resolve) => {
      const removed = [];
      new MutationObserver((changes) => {
        for (const { removedNodes } of changes) for (const node of removedNodes) removed.push(node.textContent);
      }).observe(document.querySelector('main'), { childList: true });
      setTimeout(() => resolve(removed), 900);
    })`;
    const seen = other.page.evaluate(removed);
    await setVisibility('hidden', other);
    await setVisibility('visible', other);
    expect(await seen).toEqual([]);
    await restore();
    await other.page.close();
    await tab.sees('Queues (7)');
  });

  test('a broker that cannot be reached is reported, and what was read last stays', async () => {
    const reading = vi.spyOn(world.broker, 'queues').mockRejectedValue(new Error('connect ECONNREFUSED'));
    await tab.sees('The broker cannot be reached:', 'Queues (7)');
    reading.mockRestore();
    await tab.page.getByText('The broker cannot be reached:').waitFor({ state: 'detached' });
  });
});

describe.skipIf(CHROMIUM === undefined)('a dashboard with a login', () => {
  test.each([
    ['is requested again', { challenge: 'Bearer' }],
    ['is refused', false],
  ] as const)('an expired login that %s is reported, and a button leads to it', async (_, refusal) => {
    let isLoggedIn = true;
    const authorize = (): true | typeof refusal => isLoggedIn || refusal;
    const { world, tab, close } = await showWorld({ authorize });
    onTestFinished(close);
    await tab.view('/queues/default?state=retry');
    await tab.sees('image:resize');
    isLoggedIn = false;
    await tab.sees('Your login has expired.', 'What is shown was read', 'image:resize');
    await untilSent(tab);
    const before = world.requests.length;
    await tab.page.waitForTimeout(NO_MORE_MS);
    expect(world.requests.slice(before)).toEqual([]);
    expect(await tab.page.getByText('cannot be reached').count()).toBe(0);
    isLoggedIn = true;
    await tab.page.getByRole('button', { name: 'Log in again' }).click();
    await tab.page.getByText('Your login has expired.').waitFor({ state: 'detached' });
    await tab.sees('image:resize');
  });

  test('an expired login is distinguished from a lost connection when the stream cannot be opened', async () => {
    let isLoggedIn = true;
    const { world, tab, close } = await showWorld({ authorize: () => isLoggedIn });
    onTestFinished(close);
    await tab.sees('Queues (5)');
    const restore = await world.cutOff();
    await tab.sees('The server of this dashboard cannot be reached.');
    isLoggedIn = false;
    await restore();
    await tab.sees('Your login has expired.');
  });
});

describe.skipIf(CHROMIUM === undefined)('a read-only dashboard', () => {
  test('the pages of a read-only dashboard have no buttons that change something', async () => {
    const { tab, close } = await showWorld({ readOnly: true });
    onTestFinished(close);
    for (const [hash, text] of [
      ['/queues/default?state=retry', 'image:resize'],
      ['/queues/default/tasks/exact', 'ledger:post'],
      ['/queues/mail?view=limits', 'at most 8 at a time'],
      ['/search?text=image', '8 matches'],
    ] as const) {
      await tab.view(hash);
      await tab.sees(text);
      const buttons = await tab.page.locator('main').getByRole('button').allTextContents();
      expect(buttons.filter((name) => !/^(Hex|Copy|Search|Search again)$/.test(name))).toEqual([]);
      expect(await tab.page.locator('main table').getByRole('checkbox').count()).toBe(0);
    }
    await tab.page.getByText('read only').waitFor();
  });
});
