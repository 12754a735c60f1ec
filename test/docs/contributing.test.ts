import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { read, ROOT } from './read.ts';

/** What the tables of files name, in `| in FOLDER | contains |`: files without their extension. */
function namedFiles(): string[] {
  const page = read('CONTRIBUTING.md');
  return [...page.matchAll(/^\| in `(.+?)`.+\n((?:\|.+\n)+)/gm)].flatMap(([, folder = '', rows = '']) => {
    const cells = [...rows.matchAll(/^\|([^|]+)\|/gm)].map(([, cell = '']) => cell);
    const names = cells.flatMap((cell) => [...cell.matchAll(/`(.+?)`/g)]);
    return names.map(([, name = '']) => `${folder}/${name}`);
  });
}

function programsIn(folder: string): string[] {
  return readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' })
    .filter((path) => /\.tsx?$/.test(path))
    .map((path) => `${folder}/${path.replaceAll('\\', '/').replace(/\.tsx?$/, '')}`);
}

test('the tables of CONTRIBUTING.md name every file of src and of bench/lib once, and no other', () => {
  const programs = [...programsIn('src'), ...programsIn('bench/lib')];
  expect(namedFiles().sort()).toEqual(programs.sort());
});
