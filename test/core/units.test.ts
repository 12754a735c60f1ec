import { expect, test } from 'vitest';
import { DAY_MS, LAST_DATE_MS, utcDay } from '../../src/core/units.ts';

test('a day is that of UTC, up to its last millisecond', () => {
  const midnight = Date.UTC(2026, 10, 21);
  expect(utcDay(midnight)).toBe('2026-11-21');
  expect(utcDay(midnight + DAY_MS - 1)).toBe('2026-11-21');
  expect(utcDay(midnight - 1)).toBe('2026-11-20');
});

test('the last date is the last time that a Date can hold', () => {
  expect(new Date(LAST_DATE_MS).getTime()).toBe(LAST_DATE_MS);
  expect(new Date(LAST_DATE_MS + 1).getTime()).toBeNaN();
});
