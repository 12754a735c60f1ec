import { existsSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { expect, test } from 'vitest';
import { filesIn, read, ROOT } from './read.ts';

const PAGES = [
  ...['README.md', 'CONTRIBUTING.md', 'CHANGELOG.md', 'SECURITY.md', 'AGENTS.md'],
  ...[...filesIn('docs', '.md'), ...filesIn('examples', '.md')],
];

/** The text of a page without its blocks of code. */
function proseOf(page: string): string {
  return read(page).replaceAll(/^```[^]*?^```/gm, '');
}

/** The anchors of a page, as GitHub makes them of its headings. */
function anchorsOf(page: string): string[] {
  return [...proseOf(page).matchAll(/^#+ (.+)$/gm)].map(([, heading = '']) =>
    heading
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N} _-]/gu, '')
      .replaceAll(' ', '-'),
  );
}

function brokenLinksIn(page: string): string[] {
  const links = [...proseOf(page).matchAll(/\]\(([^)\s]+)\)/g)].map(([, link = '']) => link);
  return links.filter((link) => {
    if (/^[a-z]+:/.test(link)) return false;
    const [path = '', anchor] = link.split('#');
    const target = path === '' ? page : relative(ROOT, join(ROOT, dirname(page), path));
    if (!existsSync(join(ROOT, target)) || isOutsideSite(page, target)) return true;
    return anchor !== undefined && !anchorsOf(target).includes(anchor);
  });
}

/** The site has the pages of docs/ only. */
function isOutsideSite(page: string, target: string): boolean {
  return page.startsWith('docs/') && !target.startsWith('docs/');
}

test.each(PAGES)('every link in %s leads to a file, and to a heading in it', (page) => {
  expect(brokenLinksIn(page)).toEqual([]);
});

/** What to use for what: a table that begins with "I want". */
function useTableOf(page: string): string[] {
  const lines = read(page).split('\n');
  const start = lines.findIndex((line) => line.startsWith('| I want'));
  const rows = lines.slice(start, lines.indexOf('', start));
  return rows.map((row) => row.replaceAll('](docs/', '](').replaceAll(/ +\||-+/g, '|'));
}

test('the first page of the site has the table of README, with its own links', () => {
  expect(useTableOf('README.md').length).toBeGreaterThan(10);
  expect(useTableOf('docs/README.md')).toEqual(useTableOf('README.md'));
});
