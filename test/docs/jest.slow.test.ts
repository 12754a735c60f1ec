/** The test of docs/testing.md that needs jest, in the environment in which jest runs tests: a context with its globals and timers. */
import { buildSync } from 'esbuild';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { runInContext } from 'node:vm';
import { expect, test } from 'vitest';
import { snippetsUnder, type WITH_FRAMEWORKS } from './snippets.ts';

const PAGE = 'docs/testing.md';
const HEADING: keyof (typeof WITH_FRAMEWORKS)[typeof PAGE] = 'jest';

type Jest = typeof import('../dashboard/node_modules/jest-environment-node/build/index.js');
const requireJest = createRequire(join(import.meta.dirname, '../dashboard/package.json'));

test('the fake timers of jest move a timer', () => {
  const [snippet] = snippetsUnder(PAGE, HEADING);
  const stdin = { contents: snippet?.source ?? '', resolveDir: import.meta.dirname };
  const [bundle] = buildSync({ stdin, bundle: true, platform: 'node', write: false }).outputFiles;

  const { TestEnvironment } = requireJest('jest-environment-node') as Jest;
  const projectConfig = { globals: {}, testEnvironmentOptions: {}, fakeTimers: {}, rootDir: '.' };
  const environment = new TestEnvironment({ projectConfig, globalConfig: {} } as never, {} as never);
  const { fakeTimersModern: timers, moduleMocker } = environment;
  const tests: (() => void)[] = [];
  Object.assign(environment.global, {
    expect,
    require: createRequire(import.meta.url),
    test: (_: string, run: () => void) => tests.push(run),
    jest: {
      useFakeTimers: () => timers?.useFakeTimers(),
      advanceTimersByTime: (ms: number) => timers?.advanceTimersByTime(ms),
      fn: () => moduleMocker?.fn(),
    },
  });
  runInContext(bundle?.text ?? '', environment.getVmContext() ?? expect.fail('no context'));
  expect(tests).toHaveLength(1);
  for (const run of tests) run();
  timers?.dispose();
});
