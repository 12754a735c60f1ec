import { gunzipSync } from 'node:zlib';
import { expect, test } from 'vitest';
import { buildPage, type PageAsset } from '../../../build-page.ts';

const KB = 1_000;

const textOf = ({ gzipped }: PageAsset): string => Buffer.from(gunzipSync(gzipped)).toString();

const sizeOf = (assets: readonly PageAsset[]): number =>
  assets.reduce((sum, { gzipped }) => sum + gzipped.length, 0);

/** The HTML, and the files that it or they name before any page has been opened. */
function firstPage(assets: readonly PageAsset[]): PageAsset[] {
  const needed = new Set(['index.html']);
  for (const name of needed) {
    const asset = assets.find((one) => one.name === name);
    if (asset === undefined) continue;
    const text = textOf(asset);
    const names = name.endsWith('.html') ? /(?:src|href)="([^":]+)"/g : /(?:from|import)"\.\/([^"]+)"/g;
    for (const [, file = ''] of text.matchAll(names)) needed.add(file);
  }
  return assets.filter(({ name }) => needed.has(name));
}

test('the first page of the dashboard is at most 35 kB of gzip, and all of it 90 kB', async () => {
  const assets = await buildPage();
  const first = firstPage(assets);
  expect(first.length).toBeGreaterThan(3);
  expect(sizeOf(first)).toBeLessThanOrEqual(35 * KB);
  expect(sizeOf(assets)).toBeLessThanOrEqual(90 * KB);
});

test('the page of the dashboard has no inline script or style, and every other file a hash in its name', async () => {
  const assets = await buildPage();
  const html = assets
    .filter(({ name }) => name === 'index.html')
    .map(textOf)
    .join();
  expect(html).toContain('<script');
  expect(html).not.toMatch(/<script(?![^>]* src=)|<style|style=|\son\w+=|https?:/);
  for (const { name } of assets) if (name !== 'index.html') expect(name).toMatch(/-[A-Z0-9]{8}\.(js|css)$/);
});
