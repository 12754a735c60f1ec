import { execFile } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, describe, expect, test } from 'vitest';
import { BY_CHANCE, DIFFERENT } from './differences.ts';
import { findNodeSource } from './node-source.ts';

const PRELOADED = fileURLToPath(new URL('replace-timers.cjs', import.meta.url));
const TEST_MS = 60_000;
/** They measure real time, and some expect a machine that has nothing else to do. */
const ATTEMPTS = 4;

const source = await findNodeSource();
if (source.leftOut !== undefined) console.warn(`Node's own timer tests are left out: ${source.leftOut}`);

/** `parallel/test-timers-….js` and `sequential/test-timers-….js`. */
function testsIn(folder: string): string[] {
  return ['parallel', 'sequential'].flatMap((group) =>
    readdirSync(join(folder, 'test', group))
      .filter((name) => /^test-timers.*\.js$/.test(name))
      .map((name) => `${group}/${name}`),
  );
}

/** @returns what a test has printed, if it has failed. */
function failureOf(file: string): Promise<string | undefined> {
  const flags = /^\/\/ Flags: (.*)$/m.exec(readFileSync(file, 'utf8'))?.[1]?.trim().split(/\s+/) ?? [];
  // In the environment, for the processes that a test starts, too.
  const env = { ...process.env, NODE_OPTIONS: `--require=${JSON.stringify(PRELOADED)}` };
  return new Promise((resolve) => {
    execFile(process.execPath, [...flags, file], { env, timeout: TEST_MS }, (error, stdout, stderr) => {
      resolve(error === null ? undefined : `${error.message}\n${stdout}\n${stderr}`);
    });
  });
}

async function failureOfAll(file: string, attempts: number): Promise<string | undefined> {
  const failure = await failureOf(file);
  return failure === undefined || attempts <= 1 ? failure : failureOfAll(file, attempts - 1);
}

describe.skipIf(source.leftOut !== undefined)("Node's own timer tests with our functions", () => {
  const { folder, remove } = source.leftOut === undefined ? source : { folder: '', remove: () => undefined };
  const tests = folder === '' ? [] : testsIn(folder);
  const fileOf = (name: string): string => join(folder, 'test', name);
  const isListed = (name: string): boolean => name in DIFFERENT || name in BY_CHANCE;
  afterAll(remove);

  test('every test of Node that is listed as different exists', () => {
    expect(tests).toEqual(expect.arrayContaining([...Object.keys(DIFFERENT), ...Object.keys(BY_CHANCE)]));
  });

  test.each(tests.filter((name) => !isListed(name)))(
    "Node's test %s passes with our functions",
    { timeout: ATTEMPTS * TEST_MS },
    async (name) => {
      expect(await failureOfAll(fileOf(name), ATTEMPTS)).toBeUndefined();
    },
  );

  test.each(Object.entries(DIFFERENT))('%s fails: it %s', { timeout: TEST_MS }, async (name) => {
    expect(await failureOf(fileOf(name))).toBeDefined();
  });

  test.each(Object.entries(BY_CHANCE))(
    '%s passes or fails by chance: it %s',
    { timeout: 2 * TEST_MS },
    async (name) => {
      const failure = await failureOf(fileOf(name));
      expect(failure ?? 'AssertionError').toContain('AssertionError');
    },
  );
});
