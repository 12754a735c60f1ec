import { expect, test } from 'vitest';
import { optionsPage } from '../../tools/options-page.ts';
import { read } from './read.ts';

/** As if no column of a table was aligned. */
function unaligned(page: string): string {
  return page.replaceAll(/ +\|/g, ' |').replaceAll(/-{3,}/g, '---');
}

test('the page of options is what `npm run docs:options` writes from the sources', () => {
  expect(unaligned(optionsPage())).toBe(unaligned(read('docs/options.md')));
});
