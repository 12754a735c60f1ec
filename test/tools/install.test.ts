import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { isInstalled } from '../../tools/install.ts';
import { folderOfTest } from '../folder.ts';

const WANTED = {
  '': {},
  'node_modules/a': { version: '1.0.0' },
  'node_modules/a-win32': { version: '1.0.0', optional: true },
  'node_modules/typescript': { version: '6.0.0', peer: true },
};

/** A folder with a lock file, and what npm writes when it has installed packages. */
function folderWith(installed?: object): string {
  const folder = folderOfTest();
  writeFileSync(join(folder, 'package-lock.json'), JSON.stringify({ packages: WANTED }));
  mkdirSync(join(folder, 'node_modules'));
  const file = join(folder, 'node_modules/.package-lock.json');
  if (installed !== undefined) writeFileSync(file, JSON.stringify({ packages: installed }));
  return folder;
}

test('a folder is installed when it has every package of its lock file but optional ones and peers', () => {
  expect(isInstalled(folderWith({ 'node_modules/a': { version: '1.0.0' } }))).toBe(true);
});

test('a folder is not installed when npm was interrupted, or the lock file names another version', () => {
  expect(isInstalled(folderWith())).toBe(false);
  expect(isInstalled(folderWith({ 'node_modules/a': { version: '0.9.0' } }))).toBe(false);
});

test.each(['bench', 'tools'])('the lock file of %s lists nothing that npm leaves out', (folder) => {
  const { packages } = JSON.parse(readFileSync(`${folder}/package-lock.json`, 'utf8')) as {
    packages: Record<string, { extraneous?: boolean; resolved?: string }>;
  };
  const entries = Object.values(packages);
  expect(entries.length).toBeGreaterThan(5);
  expect(entries.filter(({ extraneous, resolved }) => extraneous === true || resolved !== undefined)).toEqual(
    [],
  );
});
