import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { LOCK_PREFIX } from '../../src/tasks/task-identity.ts';
import { read, ROOT } from './read.ts';

const SOURCES = 'src/tasks/broker/redis';

const PAGE = read('docs/how-it-works.md').split('## Redis keys and scripts')[1] ?? '';
const KEYS = read(`${SOURCES}/keys.ts`).replaceAll(/\bLOCK_PREFIX\]/g, `'${LOCK_PREFIX}']`);

const ROWS = PAGE.split('\n## ')[0]
  ?.split('\n')
  .filter((line) => line.startsWith('| `'))
  .map((line) => line.split('|').map((cell) => cell.trim()));

/** A row of the page for each name in its first column, by the part of a name that does not vary. */
function documented(isKey: (name: string) => boolean): Map<string, string> {
  const rows = (ROWS ?? []).flatMap(([, names = '', second = '']) =>
    [...names.matchAll(/`([^`]+)`/g)].map(([, name = '']) => [name, second] as const),
  );
  return new Map(rows.filter(([name]) => isKey(name)));
}

const isOfQueue = (name: string): boolean => !name.startsWith('asynq:') && !name.endsWith('.ts');

/** Without the names that vary: `t:ID` is `t:`. */
const fixedPart = (name: string): string => name.replace(/[A-Z]+$/, '');

test('the page of keys has each key of a queue, with its type', () => {
  const declared = [
    ...KEYS.matchAll(/\/\*\* (?:Ours\. )?([A-Z]{3,}|).*?\*\/\n {2}(\w+): \['\w+', '([\w:-]+)'\]/g),
  ];
  const expected = declared.map(([, type = '', name = '', key = '']): [string, string] => {
    return [key, name.endsWith('Channel') ? 'channel' : type];
  });
  expect(expected.length).toBe((KEYS.match(/^ {2}\w+: \['/gm) ?? []).length);
  const rows = [...documented(isOfQueue)].map(([name, type]): [string, string] => [fixedPart(name), type]);
  const ofSets = rows.filter(([name]) => name === 'g:GROUP:');
  expect(ofSets).toEqual([['g:GROUP:', 'ZSET']]);
  expect(rows.filter((row) => !ofSets.includes(row)).sort()).toEqual(expected.sort());
});

test('the page of keys has each key that belongs to no queue', () => {
  const declared = [...KEYS.matchAll(/['`](asynq:[\w:-]+)/g)].map(([, key = '']) => key);
  const names = [...documented((name) => name.startsWith('asynq:')).keys()];
  const rows = names.map((name) => name.replace(/\{ID\}$|ID$|ENTRY$/, ''));
  expect(rows.sort()).toEqual([...new Set(declared)].sort());
});

test('the page of scripts has each file that has some', () => {
  const files = readdirSync(join(ROOT, SOURCES)).filter((name) =>
    /^export const [A-Z_]+ = (new Script|change\w+)\(/m.test(read(`${SOURCES}/${name}`)),
  );
  expect([...documented((name) => name.endsWith('.ts')).keys()].sort()).toEqual(files.sort());
});
