import { expect, test } from 'vitest';
import { median, pairedDifferences, pairedRatios, quantile, summarize } from '../../bench/lib/statistics.ts';

test('the median is the middle value, or the mean of the two in the middle', () => {
  expect(median([9, 1, 5])).toBe(5);
  expect(median([4, 1, 2, 3])).toBe(2.5);
  expect(median([7])).toBe(7);
});

test('without samples there is no median', () => {
  expect(median([])).toBeNaN();
});

test('samples are sorted as numbers and left as they were', () => {
  const samples = [100, 9, 20];
  expect(median(samples)).toBe(20);
  expect(samples).toEqual([100, 9, 20]);
});

test('quantiles interpolate between the closest ranks', () => {
  expect(quantile([0, 10, 20, 30], 0)).toBe(0);
  expect(quantile([0, 10, 20, 30], 1)).toBe(30);
  expect(quantile([0, 10], 0.25)).toBe(2.5);
});

test('one outlier moves the range, neither the median nor the deviation', () => {
  expect(summarize([10, 11, 12, 11, 500])).toEqual({ median: 11, min: 10, max: 500, mad: 1 });
});

test('ratios and differences are taken round by round', () => {
  expect(pairedRatios([10, 90], [5, 30])).toEqual([2, 3]);
  expect(pairedDifferences([10, 90], [5, 30])).toEqual([5, 60]);
});

test('a round that only one of the two has is left out', () => {
  expect(pairedRatios([10, 90, 70], [5])).toEqual([2]);
});
