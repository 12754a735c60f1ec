import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { optionsPage } from '../../tools/options-page.ts';

test('the page of options is what `npm run docs:options` writes from the sources', async () => {
  const page = readFileSync(join(import.meta.dirname, '../../docs/options.md'), 'utf8');
  expect(await optionsPage()).toBe(page);
}, 60_000);
