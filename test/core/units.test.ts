import { expect, test } from 'vitest';
import { DAY_MS, HOUR_MS, largestUnits, MINUTE_MS, SECOND_MS } from '../../src/core/units.ts';

test.each([
  [0, ''],
  [999, ''],
  [SECOND_MS, '1s'],
  [MINUTE_MS + 1_999, '1m 1s'],
  [HOUR_MS + 59 * SECOND_MS, '1h'],
  [DAY_MS + 2 * HOUR_MS + 3 * MINUTE_MS, '1d 2h'],
  [400 * DAY_MS, '400d'],
])('the largest units of %d ms are %j', (ms, text) => {
  expect(
    largestUnits(ms)
      .map((part) => part.join(''))
      .join(' '),
  ).toBe(text);
});
