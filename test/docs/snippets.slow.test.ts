import { expect, it } from 'vitest';
import { folderOfTest } from '../folder.ts';
import { freshDatabase } from '../redis/redis-case.ts';
import { runProgram, runTests } from '../run-program.ts';
import { readSnippets, runnerOf, transpile, typeErrors } from './snippets.ts';

const snippets = readSnippets();

/** Node says so of parts of its own, node:test's mock timers for one. */
const NO_EXPERIMENTS = ['--disable-warning=ExperimentalWarning'];

it('the snippets in README and docs are there', () => {
  expect(snippets.length).toBeGreaterThan(3);
});

it('the snippets in README and docs compile in a strict program', () => {
  expect(typeErrors(snippets)).toEqual([]);
}, 300_000);

it('the snippets in README and docs are run, each of them: here, by new-reader.slow.test.ts, or with their framework', () => {
  const isNot = snippets.filter((snippet) => runnerOf(snippet) === undefined);
  expect(isNot.map(({ where }) => where)).toEqual([]);
});

it.each(snippets.filter((snippet) => runnerOf(snippet) === 'test'))('$where passes', (snippet) => {
  const { stdout, status } = runTests(transpile(snippet));
  expect(stdout).toMatch(/Tests\s+1 passed/);
  expect(status).toBe(0);
});

it.each(snippets.filter((snippet) => runnerOf(snippet) === 'program'))(
  '$where runs, prints what its comments show, and ends by itself',
  async (snippet) => {
    const database = snippet.source.includes('REDIS_URL') ? await freshDatabase() : undefined;
    const folder = folderOfTest(); // snippets leave their files behind
    const env = { TMPDIR: folder, ...(database === undefined ? {} : { REDIS_URL: database.url }) };
    const { stdout, stderr, status } = runProgram(transpile(snippet), { flags: NO_EXPERIMENTS, env });
    await database?.dispose();
    expect(stderr).toBe('');
    expect(status).toBe(0);
    const printed = stdout.split('\n').filter((line) => line !== '');
    if (snippet.prints.length > 0) expect(printed).toEqual(snippet.prints);
  },
);
