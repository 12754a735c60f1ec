/** `tsx tools/dashboard-pictures.ts` draws the pictures of the dashboard in docs/images, in Chromium. */
import { mkdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Page } from 'playwright-core';
import { launch, openTab } from '../test/dashboard/page/browser.ts';
import { openWorld } from '../test/dashboard/page/world.ts';

const FOLDER = join(import.meta.dirname, '../docs/images');
const MOST_BYTES = 150_000;
/** Until sparklines and charts have something to show. */
const WARM_UP_MS = 45_000;

interface Picture {
  readonly name: string;
  readonly hash: string;
  readonly height: number;
  readonly theme: 'light' | 'dark';
  readonly wait: string;
}

const PICTURES: readonly Picture[] = [
  { name: 'dashboard-overview', hash: '/', height: 550, theme: 'light', wait: 'Queues (' },
  { name: 'dashboard-search', hash: '/search?text=503', height: 640, theme: 'dark', wait: 'tasks scanned' },
  { name: 'dashboard-timers', hash: '/timers', height: 600, theme: 'light', wait: 'Level 1' },
];

async function draw(page: Page, { name, height, theme }: Picture): Promise<void> {
  await page.setViewportSize({ width: 1100, height });
  await page.emulateMedia({ colorScheme: theme });
  await sleep(1_500);
  const path = join(FOLDER, `${name}.png`);
  await page.screenshot({ path });
  const { size } = statSync(path);
  process.stdout.write(`${path}: ${size} bytes\n`);
  if (size > MOST_BYTES) throw new Error(`${path} has ${size} bytes, at most ${MOST_BYTES} are allowed`);
}

mkdirSync(FOLDER, { recursive: true });
const [world, browser] = await Promise.all([openWorld({ isBusy: true, isTame: true }), launch()]);
try {
  const tab = await openTab(browser, world.url);
  await sleep(WARM_UP_MS);
  for (const picture of PICTURES) {
    await tab.view(picture.hash);
    await tab.sees(picture.wait);
    await draw(tab.page, picture);
  }
} finally {
  await browser.close();
  await world.close();
}
