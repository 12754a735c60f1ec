import { describe, expect, test } from 'vitest';
import { manyLines, oneLine, visible } from '../../../src/dashboard/page/format.ts';
import { prettyTokens } from '../../../src/dashboard/page/json-text.ts';

describe('names and texts', () => {
  test.each([
    ['a\u202eb', 'a\\u202eb'],
    ['a\0b\x1b[31m\r\n', 'a\\u0000b\\u001b[31m\\u000d\\u000a'],
    ['pay\u00adpal\u200b\u200d\ufeff', 'pay\\u00adpal\\u200b\\u200d\\ufeff'],
    ['a\u3164\u{e0041}', 'a\\u3164\\u{e0041}'],
    ['\u{1f469}\u200d\u{1f469}\u200d\u{1f467} \u{1f3f4}\u200d\u2620\ufe0f', undefined],
    ['مرحبا שלום 日本', undefined],
  ])('characters that are not seen have their codes, and emoji stay whole: %j', (text, shown = text) =>
    expect(visible(text)).toBe(shown),
  );

  test('a text of many lines keeps them where it has the room, and is on one line in a list', () => {
    const error = 'Error: no\n\tat a.js:1\r\n\tat \u202eb.js:2';
    expect(manyLines(error)).toBe('Error: no\n\tat a.js:1\r\n\tat \\u202eb.js:2');
    expect(oneLine(error, 100)).toBe('Error: no at a.js:1 at \\u202eb.js:2');
    expect(oneLine(error, 9)).toBe('Error: no…');
  });
});

describe('JSON', () => {
  const textOf = (json: string): string | undefined =>
    prettyTokens(json)
      ?.map(({ text }) => text)
      .join('');

  test('JSON is indented with its numbers as they are, and a string cannot turn its line around', () => {
    expect(textOf('{"n":12345678901234567890,"n":1.0,"s":"\u202e","e":[]}')).toBe(
      '{\n  "n": 12345678901234567890,\n  "n": 1.0,\n  "s": "\\u202e",\n  "e": []\n}',
    );
    expect(textOf('{"n":1')).toBeUndefined();
  });

  test('JSON of a megabyte of brackets is not indented, which would take 80 MB', () => {
    expect(textOf('['.repeat(499_000) + ']'.repeat(499_000))).toBeUndefined();
    expect(textOf('['.repeat(100) + ']'.repeat(100))).toContain('\n');
  });
});
