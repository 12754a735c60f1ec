import { EscapementError } from 'escapement';
import { Task } from 'escapement/tasks';
import type { Browser } from 'playwright-core';
import { beforeAll, describe, expect, test, vi } from 'vitest';
import { CHROMIUM, openTab, type Tab } from './browser.ts';
import { showWorld, type World } from './world.ts';

describe.skipIf(CHROMIUM === undefined)('reading the dashboard', () => {
  let world: World;
  let browser: Browser;
  let tab: Tab;

  beforeAll(async () => {
    const shown = await showWorld();
    ({ world, browser, tab } = shown);
    return shown.close;
  });

  const add = (type: string, payload: unknown, options: object): Promise<unknown> =>
    world.client.enqueue(new Task(type, payload), options);

  test('a queue and a task that are named by dots have their pages', async () => {
    await add('dot:dot', {}, { queue: '..', taskId: '.' });
    await tab.view('/');
    await tab.page.locator('table').getByRole('link', { name: '..', exact: true }).click();
    await tab.page.getByRole('link', { name: 'dot:dot' }).click();
    await tab.page.locator('h1').getByText('Pending').waitFor();
  });

  test('the focus goes to the heading of a new page, and stays in the field of a search', async () => {
    await tab.view('/queues/default?state=archived');
    await tab.page.getByRole('link', { name: 'payment:capture' }).first().focus();
    await tab.page.keyboard.press('Enter');
    await tab.page.locator('h1:focus', { hasText: 'payment:capture' }).waitFor();
    await tab.view('/search');
    await tab.page.getByRole('searchbox').fill('card declined');
    await tab.page.keyboard.press('Enter');
    await tab.sees('3 matches');
    expect(await tab.page.locator('[name=text]:focus').inputValue()).toBe('card declined');
    const fresh = await openTab(browser, world.url);
    await fresh.sees('Overview');
    await fresh.page.keyboard.press('Tab');
    await fresh.page.locator('.skip:focus').waitFor();
    await fresh.page.close();
  });

  test('the focus goes to the heading when the next page of a list takes the place of the link that led there', async () => {
    await tab.view('/queues/imports?state=pending');
    await tab.page.getByRole('link', { name: 'Next' }).focus();
    await tab.page.keyboard.press('Enter');
    await tab.sees('Page 2 of 3');
    await tab.page.locator('h1:focus', { hasText: 'imports' }).waitFor();
  });

  test('a dialog gives the focus back to the button that opened it, whatever closes it', async () => {
    await tab.view('/queues/imports');
    const opener = tab.page.getByRole('button', { name: 'Delete queue' });
    for (const key of ['Enter', 'Escape']) {
      await opener.focus();
      await tab.page.keyboard.press('Enter');
      await tab.page.getByRole('dialog').getByRole('button', { name: 'Keep as it is' }).focus();
      await tab.page.keyboard.press(key);
      await tab.page.locator('button:focus', { hasText: 'Delete queue' }).waitFor();
    }
  });

  test('a page whose address changes before it is painted shows the later address', async () => {
    await tab.view('/charts');
    await tab.sees('Five minutes');
    await tab.view('/servers');
    await tab.sees('video:transcode');
    await tab.page.evaluate(`location.hash = '/charts';
      new MutationObserver((_, observer) => {
        if (document.querySelector('.tabs') === null) return;
        observer.disconnect();
        location.hash = '/charts?span=day';
      }).observe(document.body, { childList: true, subtree: true });`);
    await tab.page.locator('[aria-current=page]', { hasText: 'One day' }).waitFor();
  });

  test('the time axis of a chart with few samples shows no second twice', async () => {
    const atMs = [1_795_845_600_300, 1_795_845_601_300, 1_795_845_602_300];
    const zeros = [0, 0, 0];
    const json = {
      atMs,
      processedPerS: zeros,
      failedPerS: zeros,
      pending: zeros,
      active: zeros,
      latencyMs: zeros,
    };
    await tab.page.route('**/api/history*', (route) => route.fulfill({ json }));
    await tab.page.evaluate(`{
      const { prototype } = CanvasRenderingContext2D;
      const { clearRect, fillText } = prototype;
      prototype.clearRect = function (...rectangle) {
        this.canvas.times = [];
        clearRect.apply(this, rectangle);
      };
      prototype.fillText = function (text, ...rest) {
        if (/:\\d\\d:/.test(text)) this.canvas.times?.push(text);
        fillText.call(this, text, ...rest);
      };
    }`);
    await tab.view('/charts');
    const times = await vi.waitFor(async () => {
      const shown = await tab.page.evaluate<string[]>('document.querySelector("canvas")?.times ?? []');
      expect(shown.length).toBeGreaterThan(1);
      return shown;
    });
    expect(new Set(times).size).toBe(times.length);
    await tab.page.unroute('**/api/history*');
    await tab.page.reload();
  });

  test('a page of queues that does not exist any more has none, and links to those before it', async () => {
    await tab.view('/?page=9');
    await tab.sees('Page 9 of 9', 'Previous');
    expect(await tab.page.getByText('in its name').count()).toBe(0);
  });

  test('the time until a task is due is right in a browser whose clock is wrong', async () => {
    await add('due:soon', {}, { taskId: 'soon', processInMs: 3_600_000 });
    await tab.page.evaluate('{ const { now } = Date; Date.now = () => now() + 7_200_000; }');
    await tab.view('/queues/default/tasks/soon');
    await tab.sees(/^in 5\d min/);
    await tab.page.reload();
  });

  test('an error is on one line of a list, and neither it nor a payload turns its text around', async () => {
    await add('turn:text', { a: '\u202eabc' }, { taskId: 'turn', maxRetry: 0, processInMs: 1e7 });
    await add('turn:fail', { fail: 'Error: no\n  at \u202eb.js' }, { taskId: 'fail', maxRetry: 0 });
    await tab.view('/queues/default/tasks/turn');
    await tab.sees('"\\u202eabc"');
    await tab.view('/queues/default?state=archived');
    await tab.sees('Error: no at \\u202eb.js');
    await tab.view('/queues/default/tasks/fail');
    const error = tab.page.getByLabel('The last error');
    expect(await error.textContent()).toBe('Error: no\n  at \\u202eb.js');
  });

  test('a task that does not change is sent once', async () => {
    const statuses: number[] = [];
    tab.page.on('response', (response) => {
      if (response.url().endsWith('/tasks/large')) statuses.push(response.status());
    });
    await add('large', 'x'.repeat(900_000), { taskId: 'large', processInMs: 1e7 });
    await tab.view('/queues/default/tasks/large');
    await expect.poll(() => statuses.length).toBeGreaterThanOrEqual(3);
    expect(statuses).toEqual([200, ...statuses.slice(1).map(() => 304)]);
    await world.inspector.archiveTask('default', 'large');
    await tab.page.locator('h1').getByText('Archived').waitFor();
    tab.page.removeAllListeners('response');
  });

  /** Holds requests back until the function that it returns is called. */
  async function hold(pattern: string): Promise<() => Promise<void>> {
    let release: () => void = () => undefined;
    const released = new Promise<void>((resolve) => {
      release = resolve;
    });
    await tab.page.route(pattern, async (route) => {
      await released;
      await route.continue().catch(() => undefined); // the page may have aborted it
    });
    return async () => {
      release();
      await tab.page.unroute(pattern);
    };
  }

  test('a response that does not come within a minute is an error, until a later one comes', async () => {
    await tab.page.evaluate(`{
      const { setTimeout } = window;
      window.setTimeout = (run, ms) => setTimeout(run, ms === 60_000 ? 500 : ms);
    }`);
    const release = await hold('**/api/queues/mail');
    await tab.view('/queues/mail');
    await tab.sees('The server has not answered for a minute.');
    await release();
    await tab.page.getByText('The server has not answered').waitFor({ state: 'detached' });
    await tab.sees('Pause');
    await tab.page.reload();
  });

  test('a button that is pressed twice on a slow network makes one change', async () => {
    const release = await hold('**/pause');
    const before = world.requests.length;
    await tab.view('/queues/mail');
    await tab.press('Pause');
    const pause = tab.page.getByRole('button', { name: 'Pause', exact: true });
    expect(await pause.isDisabled()).toBe(true);
    await pause.click({ force: true });
    await release();
    await tab.page.getByText('The queue is paused').waitFor();
    await tab.sees('Resume');
    expect(world.requests.slice(before).filter((request) => request.endsWith('/pause'))).toHaveLength(1);
  });

  test('a double click on the button that pauses a queue does not resume it', async () => {
    const { mouse } = tab.page;
    await tab.view('/queues/reports');
    await tab.press('Pause');
    await tab.page.getByRole('button', { name: 'Resume', exact: true }).waitFor();
    const before = world.requests.length;
    await mouse.down({ clickCount: 2 });
    await mouse.up({ clickCount: 2 });
    await expect.poll(() => world.requests.slice(before + 2)).toContain('GET /api/queues/reports');
    expect(world.requests.slice(before).filter((request) => request.startsWith('POST'))).toEqual([]);
    await tab.press('Resume');
    await tab.page.getByRole('button', { name: 'Pause', exact: true }).waitFor();
  });

  test('the button that pauses a queue keeps the focus, and the keyboard resumes it', async () => {
    const button = (name: string): Promise<void> =>
      tab.page.locator('button:focus', { hasText: new RegExp(`^${name}$`) }).waitFor();
    await tab.view('/queues/reports');
    await tab.page.getByRole('button', { name: 'Pause', exact: true }).focus();
    await tab.page.keyboard.press('Enter');
    await button('Resume');
    await tab.page.keyboard.press('Enter');
    await button('Pause');
    expect((await world.inspector.getQueueInfo('reports')).paused).toBe(false);
  });

  test('a change that ends after its question was closed leaves the next question open', async () => {
    await add('ask:twice', {}, { taskId: 'twice', processInMs: 1e7 });
    const release = await hold('**/archive');
    await tab.view('/queues/default/tasks/twice');
    await tab.press('Archive');
    await tab.page.getByRole('dialog').getByRole('button', { name: 'Archive', exact: true }).click();
    await tab.page.keyboard.press('Escape');
    await tab.press('Delete');
    const question = tab.page.getByRole('dialog', { name: 'Delete?' });
    await question.waitFor();
    await release();
    await tab.page.getByText('The task is archived.').waitFor();
    await tab.page.locator('h1').getByText('Archived').waitFor();
    expect(await question.isVisible()).toBe(true);
    await tab.page.keyboard.press('Escape');
  });

  test('another page stays open when a slow deletion ends that began on the page before', async () => {
    for (const taskId of ['slow', 'rest'])
      await add('slow:delete', {}, { taskId, queue: 'slow', processInMs: 1e7 });
    const deletions = [
      ['/queues/slow/tasks/slow', 'Delete', 'The task is deleted.'],
      ['/queues/slow', 'Delete queue', 'Deleted the queue slow.'],
    ] as const;
    const release = await Promise.all([hold('**/slow/delete'), hold('**/api/queues/slow?force=1')]);
    for (const [nth, [hash, button, report]] of deletions.entries()) {
      await tab.view(hash);
      await tab.press(button);
      await tab.page.getByRole('dialog').getByRole('button', { name: button, exact: true }).click();
      await tab.page.keyboard.press('Escape');
      await tab.view('/servers');
      await release[nth]?.();
      await tab.page.getByText(report).waitFor();
      expect(tab.page.url()).toMatch(/#\/servers$/);
    }
  });

  test('a search that is left while it runs shows nothing more', async () => {
    const release = await hold('**/api/search?*');
    await tab.view('/search?text=order');
    await tab.sees('Searching');
    await tab.view('/search');
    await tab.sees('What are you looking for?');
    await release();
    expect(await tab.page.getByText('Search again').count()).toBe(0);
  });

  test('while the broker is away, what was read stays, below one message', async () => {
    await tab.view('/queues/default?state=retry');
    await tab.sees('image:resize');
    const away = new EscapementError('ERR_BROKER_UNAVAILABLE', 'the broker is away');
    const mocks = (['queues', 'queueStats', 'tasks'] as const).map((name) =>
      vi.spyOn(world.broker, name).mockRejectedValue(away),
    );
    await tab.sees('The broker cannot be reached:', 'image:resize');
    await tab.page.waitForTimeout(1_500);
    expect(await tab.page.getByRole('alert').count()).toBe(1);
    for (const mock of mocks) mock.mockRestore();
    await tab.page.getByRole('alert').waitFor({ state: 'detached' });
  });

  test('the form of a search has what its address has, and an address what the form has', async () => {
    await tab.view('/search?payload=order&state=pending&queue=imports&queue=mail');
    await tab.sees('60 matches');
    const payload = tab.page.getByRole('textbox', { name: 'Payload' });
    expect(await payload.inputValue()).toBe('order');
    await payload.fill('parcel');
    await tab.page.getByLabel('Queues').selectOption(['imports']);
    await tab.page.getByRole('checkbox', { name: 'Retry' }).check();
    await payload.press('Enter');
    await tab.page.waitForURL(/#\/search\?payload=parcel&state=pending&state=retry&queue=imports$/);
    await tab.sees('No task matches');
    await tab.page.goBack();
    await expect.poll(() => payload.inputValue()).toBe('order');
    expect(await tab.page.getByRole('checkbox', { name: 'Retry' }).isChecked()).toBe(false);
    const chosen = `[...document.querySelectorAll('option:checked')].map(({ value }) => value)`;
    expect(await tab.page.evaluate(chosen)).toEqual(expect.arrayContaining(['imports', 'mail']));
  });

  test('many groups are on pages', async () => {
    for (let n = 0; n < 60; n++) await add('a', {}, { queue: 'grouped', group: `group-${n}` });
    await tab.view('/queues/grouped?state=aggregating');
    await tab.sees('Page 1 of 3', 'group-0');
    await tab.page.getByRole('link', { name: 'Next' }).click();
    await tab.sees('Page 2 of 3');
    expect(tab.problems).toEqual([]);
  });
});
