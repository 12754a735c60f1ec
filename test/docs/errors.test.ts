import { expect, test } from 'vitest';
import { read } from './read.ts';

function matchesIn(path: string, pattern: RegExp): string[] {
  return [...read(path).matchAll(pattern)].map(([, code = '']) => code).sort();
}

test('the page of errors has a row for every error code, and none for another', () => {
  const codes = matchesIn('src/core/errors.ts', /^ {2}\| '(ERR_\w+)'/gm);
  expect(codes.length).toBeGreaterThan(40);
  expect(matchesIn('docs/errors.md', /^\| `(ERR_\w+)`/gm)).toEqual(codes);
});
