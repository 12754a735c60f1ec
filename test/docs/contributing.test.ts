import { expect, test } from 'vitest';
import { filesIn, read } from './read.ts';

/** What the tables of files name, in `| in FOLDER | contains |`: files without their extension. */
function namedFiles(): string[] {
  const page = read('CONTRIBUTING.md');
  return [...page.matchAll(/^\| in `(.+?)`.+\n((?:\|.+\n)+)/gm)].flatMap(([, folder = '', rows = '']) => {
    const cells = [...rows.matchAll(/^\|([^|]+)\|/gm)].map(([, cell = '']) => cell);
    const names = cells.flatMap((cell) => [...cell.matchAll(/`(.+?)`/g)]);
    return names.map(([, name = '']) => `${folder}/${name}`);
  });
}

test('the tables of CONTRIBUTING.md name every file of src and of bench/lib once, and no other', () => {
  const programs = ['src', 'bench/lib'].flatMap((folder) => [
    ...filesIn(folder, '.ts'),
    ...filesIn(folder, '.tsx'),
  ]);
  const names = programs.map((path) => path.replace(/\.tsx?$/, ''));
  expect(namedFiles().sort()).toEqual(names.sort());
});
