import { expect, test } from 'vitest';
import { LogNormal } from '../../../bench/purgatory/lognormal.ts';
import { SeededRandom } from '../../../bench/purgatory/seeded-random.ts';

test('half is beyond the 50th percentile, a quarter beyond the 75th', () => {
  const distribution = new LogNormal(20, 60);
  expect(distribution.shareFrom(20)).toBeCloseTo(0.5, 6);
  expect(distribution.shareFrom(60)).toBeCloseTo(0.25, 5);
});

test.each([
  { pct50: 20, pct75: 60, share: 0.0787 },
  { pct50: 200, pct75: 400, share: 0.5 },
])('of $pct50/$pct75 ms, $share is 200 ms or more', ({ pct50, pct75, share }) => {
  expect(new LogNormal(pct50, pct75).shareFrom(200)).toBeCloseTo(share, 4);
});

test('everything is 0 or more, and next to nothing is huge', () => {
  const distribution = new LogNormal(20, 60);
  expect(distribution.shareFrom(0)).toBe(1);
  expect(distribution.shareFrom(1e9)).toBeCloseTo(0, 9);
});

test('what is drawn is distributed as the shares say', () => {
  const distribution = new LogNormal(20, 60);
  const random = new SeededRandom(3);
  const values = Array.from({ length: 100_000 }, () => distribution.draw(random));
  for (const bound of [5, 20, 60, 200]) {
    const share = values.filter((value) => value >= bound).length / values.length;
    expect(share).toBeCloseTo(distribution.shareFrom(bound), 2);
  }
});
