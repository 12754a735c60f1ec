import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';

const ROOT = join(import.meta.dirname, '../..');

/** Folders whose files are all in the tables of CONTRIBUTING.md; but for the page of the dashboard. */
const DESCRIBED = ['src/timer', 'src/purgatory', 'src/log', 'src/diskqueue', 'src/dashboard', 'bench/lib'];

function sourcesIn(folder: string): string[] {
  return readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' })
    .map((path) => `${folder}/${path.replaceAll('\\', '/')}`)
    .filter((path) => path.endsWith('.ts'))
    .map((path) => path.slice(0, -'.ts'.length));
}

/** What the first columns of the tables of files name. */
function namedFiles(): string[] {
  const tables = readFileSync(join(ROOT, 'CONTRIBUTING.md'), 'utf8').match(/^\| file.+\n(?:\|.+\n)+/gm) ?? [];
  const cells = tables.flatMap((table) => [...table.matchAll(/^\|([^|]+)\|/gm)].slice(1));
  return cells.flatMap(([, cell = '']) => [...cell.matchAll(/`([^`]+)`/g)].map(([, name = '']) => name));
}

test('the tables of CONTRIBUTING.md name files and folders that exist', () => {
  const sources = [...sourcesIn('src'), ...sourcesIn('bench/lib')].map((path) => `${path}//`);
  const isThere = (name: string): boolean => {
    const [start = '', end = ''] = name.replace('../', '').replace(/\/?$/, '/').split('*');
    return sources.some((path) => path.includes(`/${start}`) && path.includes(end));
  };
  const names = namedFiles().filter((name) => !name.startsWith('bench/'));
  expect(names.length).toBeGreaterThan(100);
  expect(names.filter((name) => !isThere(name))).toEqual([]);
});

test.each(DESCRIBED)('every file of %s is in a table of CONTRIBUTING.md', (folder) => {
  const names = namedFiles();
  const isNamed = (path: string): boolean =>
    names.some((name) => path.endsWith(`/${name}`) || (name.endsWith('/') && path.includes(`/${name}`)));
  const sources = sourcesIn(folder).filter((path) => !path.includes('/page/'));
  expect(sources.filter((path) => !isNamed(path))).toEqual([]);
});
