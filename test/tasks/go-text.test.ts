import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { formatGoDuration, parseGoDuration } from '../../src/tasks/go-text.ts';

const HOUR_MS = 3_600_000;

/** What Go prints for each: taken from time.Duration's documentation and its String method. */
const WRITTEN: readonly (readonly [number, string])[] = [
  [0, '0s'],
  [0.000001, '1ns'],
  [0.0011, '1.1µs'],
  [2.2, '2.2ms'],
  [300, '300ms'],
  [999.999999, '999.999999ms'],
  [1_000, '1s'],
  [1_500, '1.5s'],
  [3_300, '3.3s'],
  [60_000, '1m0s'],
  [245_000, '4m5s'],
  [245_001, '4m5.001s'],
  [30 * 60_000, '30m0s'],
  [1.5 * HOUR_MS, '1h30m0s'],
  [24 * HOUR_MS, '24h0m0s'],
  [5 * HOUR_MS + 6 * 60_000 + 7_001, '5h6m7.001s'],
  [-1_500, '-1.5s'],
];

describe('a Go duration', () => {
  it.each(WRITTEN)('of %d ms is written %s, and read back', (ms, text) => {
    expect(formatGoDuration(ms)).toBe(text);
    expect(parseGoDuration(text)).toBe(ms);
  });

  it.each([
    ['0', 0],
    ['+5s', 5_000],
    ['1h', HOUR_MS],
    ['1.1h', 1.1 * HOUR_MS],
    ['.5s', 500],
    ['5.s', 5_000],
    ['1h15m30.918s', HOUR_MS + 15 * 60_000 + 30_918],
    ['10us', 0.01],
    ['10μs', 0.01],
    ['1m1m', 120_000],
  ])('is also read from %s', (text, ms) => {
    expect(parseGoDuration(text)).toBeCloseTo(ms, 6);
  });

  it.each([
    '',
    '3',
    '-',
    's',
    '.s',
    '1 s',
    '1S',
    '1d',
    '--1s',
    '1h x',
    '1e3s',
    ' 1s',
    '2562048h',
    '9'.repeat(400) + 'h',
  ])('is not read from "%s"', (text) => {
    expect(parseGoDuration(text)).toBeUndefined();
  });

  it('longer than Go can hold is written as the longest', () => {
    expect(formatGoDuration(8.64e15)).toBe('2562047h47m16.854775807s');
    expect(parseGoDuration('2562047h47m16.854775807s')).toBeGreaterThan(9e12);
  });

  it('of whole milliseconds survives being written and read', () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 9e12 }), (ms) => {
        expect(parseGoDuration(formatGoDuration(ms))).toBe(ms);
      }),
    );
  });
});
