/** The test of docs/testing.md that needs jest, with the real jest. */
import { expect, test } from 'vitest';
import { startApplication } from './application.ts';
import { snippetsUnder, type WITH_FRAMEWORKS } from './snippets.ts';

const PAGE = 'docs/testing.md';
const HEADING: keyof (typeof WITH_FRAMEWORKS)[typeof PAGE] = 'jest';

test('the fake timers of jest move a timer', async () => {
  const [snippet] = snippetsUnder(PAGE, HEADING);
  const files = { 'timer.test.cjs': snippet?.source ?? '' };
  const words = ['node_modules/jest/bin/jest.js', '--rootDir=.', '--cacheDirectory=cache'] as const;
  const jest = startApplication(files, [process.execPath, ...words]);
  const { stderr, code } = await jest.ended;
  expect(stderr).toMatch(/Tests: +1 passed, 1 total/);
  expect(code).toBe(0);
});
