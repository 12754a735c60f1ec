import { expect, test } from 'vitest';
import { median, pairedDifferences, pairedRatios, quantile, summarize } from '../../bench/lib/statistics.ts';

test('the median is the middle value, or the mean of the two in the middle', () => {
  expect(median([9, 1, 5])).toBe(5);
  expect(median([4, 1, 2, 3])).toBe(2.5);
  expect(median([7])).toBe(7);
});

test('the median of no samples is NaN', () => expect(median([])).toBeNaN());

test('the median sorts samples as numbers and does not change their array', () => {
  const samples = [100, 9, 20];
  expect(median(samples)).toBe(20);
  expect(samples).toEqual([100, 9, 20]);
});

test('quantiles interpolate between the closest ranks', () => {
  expect(quantile([0, 10, 20, 30], 0)).toBe(0);
  expect(quantile([0, 10, 20, 30], 1)).toBe(30);
  expect(quantile([0, 10], 0.25)).toBe(2.5);
});

test('one outlier moves the range, not the median', () =>
  expect(summarize([10, 11, 12, 11, 500])).toEqual({ median: 11, min: 10, max: 500 }));

test('ratios and differences are computed round by round', () => {
  expect(pairedRatios([10, 90], [5, 30])).toEqual([2, 3]);
  expect(pairedDifferences([10, 90], [5, 30])).toEqual([5, 60]);
});

test('a round that only one contestant has is left out of the ratios', () =>
  expect(pairedRatios([10, 90, 70], [5])).toEqual([2]));
