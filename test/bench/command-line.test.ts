import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { parseCommandLine, type Settings } from '../../bench/lib/command-line.ts';
import { UsageError } from '../../bench/lib/program.ts';
import { readResult, writeResult } from '../../bench/lib/result.ts';
import { folderOfTest } from '../folder.ts';
import { runNode } from '../run-program.ts';
import { caseOf, resultOf } from './results.ts';

let printed = '';

function parse(...words: string[]): Settings | undefined {
  printed = '';
  return parseCommandLine(words, ['timer', 'workqueue'], (text) => void (printed += text));
}

test('a command line without words runs every part in full', () =>
  expect(parse()).toEqual({ parts: ['timer', 'workqueue'] }));

test('a command line can name one part, a filter and files', () => {
  const file = join(folderOfTest(), 'out.json');
  expect(parse('timer', '--filter', 'fill', '--quick', '--json', file)).toEqual({
    parts: ['timer'],
    filter: 'fill',
    quick: true,
    json: file,
  });
});

test('--help explains every option and lists the parts', () => {
  expect(parse('--help')).toBeUndefined();
  for (const word of ['--filter', '--quick', '--json', '--compare', '--html', 'Parts: timer, workqueue']) {
    expect(printed).toContain(word);
  }
});

test.each([
  { words: ['--fast'], message: "unknown option '--fast'" },
  { words: ['timers'], message: "unknown part 'timers'. Parts: timer, workqueue" },
  { words: ['timer', 'workqueue'], message: 'too many arguments' },
  { words: ['--filter'], message: "option '--filter <word>' argument missing" },
  { words: ['--json', join('no', 'such', 'folder', 'x.json')], message: "--json: cannot write 'no" },
  { words: ['--html', '.'], message: "--html: cannot write '.': it is a folder" },
])('the command line $words is rejected with a usage error', ({ words, message }) => {
  expect(() => parse(...words)).toThrow(UsageError);
  expect(() => parse(...words)).toThrow(message);
});

test('a result is the same after it was written and read', () => {
  const file = join(folderOfTest(), 'old.json');
  const result = resultOf([caseOf([1, 2], [3, 4])]);
  writeResult(file, result);
  expect(readResult(file)).toEqual(result);
});

test('--compare rejects a file that --json did not write', () => {
  const file = join(folderOfTest(), 'old.json');
  expect(() => readResult(file)).toThrow(/--compare: cannot read/);
  writeFileSync(file, '{"schema":0}');
  expect(() => readResult(file)).toThrow(/is not a result of --json/);
  writeFileSync(file, 'not json');
  expect(() => readResult(file)).toThrow(/--compare: cannot read/);
});

test('the program refuses a filter that matches no case, before the library is built: it names all cases on stderr, and exits with 2', () => {
  // With these paths an import of the library, or of what imports it, fails.
  const paths = { escapement: ['./nowhere.ts'], 'escapement/*': ['./nowhere.ts'] };
  const tsconfig = join(folderOfTest(), 'tsconfig.json');
  writeFileSync(tsconfig, JSON.stringify({ compilerOptions: { module: 'NodeNext', paths } }));
  const words = ['--import', 'tsx', 'bench/run.ts', '--filter', 'nosuch'];
  const { status, stdout, stderr } = runNode(words, { TSX_TSCONFIG_PATH: tsconfig });
  expect({ status, stdout }).toEqual({ status: 2, stdout: '' });
  expect(stderr).toMatch(/^error: --filter: no case's name contains 'nosuch'\. The cases are:\n {2}\S/);
  expect(stderr).toMatch(/\nSee --help\.\n$/);
  const some = ['put, durable: 1 caller', 'one reading of the clock', 'on a disk: stalls by compaction'];
  for (const name of some) expect(stderr).toContain(`\n  ${name}`);
});
