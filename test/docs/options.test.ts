import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { optionsPage } from '../../tools/options-page.ts';

/** As if no column of a table was aligned. */
function unaligned(page: string): string {
  return page.replaceAll(/ +\|/g, ' |').replaceAll(/-{3,}/g, '---');
}

test('the page of options is what `npm run docs:options` writes from the sources', () => {
  const page = readFileSync(join(import.meta.dirname, '../../docs/options.md'), 'utf8');
  expect(unaligned(optionsPage())).toBe(unaligned(page));
}, 60_000);
