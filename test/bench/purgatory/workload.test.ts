import { expect, test } from 'vitest';
import { SeededRandom } from '../../../bench/lib/random.ts';
import { expiredShareInTheory, LogNormal, prepareWorkload } from '../../../bench/purgatory/workload.ts';
import type { WorkloadOptions } from '../../../bench/purgatory/workload.ts';

const OPTIONS: WorkloadOptions = {
  ...{ num: 200_000, ratePerS: 100_000, timeoutMs: 200, pct50Ms: 20, pct75Ms: 60 },
  ...{ keys: 3, keySpaceSize: 100 },
};

const workload = prepareWorkload(OPTIONS);

test('arrivals are whole milliseconds in order, at the requested rate', () => {
  const { arrivalsMs } = workload;
  expect(arrivalsMs).toHaveLength(OPTIONS.num);
  expect(arrivalsMs.every((ms, index) => Number.isInteger(ms) && ms >= (arrivalsMs[index - 1] ?? 0))).toBe(
    true,
  );
  // The last of 200 000 arrives at 2 000 ms, give or take four times 4.5.
  expect(Math.abs((arrivalsMs.at(-1) as number) - 2_000)).toBeLessThan(18);
});

test('intervals between arrivals are exponential: 1 / e of them are longer than the mean', () => {
  const { arrivalsMs } = prepareWorkload({ ...OPTIONS, ratePerS: 0.1 });
  const longer = arrivalsMs.filter((ms, index) => ms - (arrivalsMs[index - 1] ?? 0) > 10_000).length;
  expect(longer / OPTIONS.num).toBeCloseTo(1 / Math.E, 2);
});

test('a workload is the same in every run', () => {
  const options = { ...OPTIONS, num: 1_000 };
  expect(prepareWorkload(options)).toEqual(prepareWorkload(options));
});

test('latencies are whole milliseconds, and as many as in theory are above the timeout', () => {
  const { latenciesMs } = workload;
  expect(latenciesMs.every((ms) => Number.isInteger(ms) && ms >= 0)).toBe(true);
  const theory = expiredShareInTheory(OPTIONS);
  expect(theory).toBeCloseTo(0.0787, 4);
  expect(latenciesMs.filter((ms) => ms >= OPTIONS.timeoutMs).length / OPTIONS.num).toBeCloseTo(theory, 2);
});

test('the keys are all different, even if there are no others', () => {
  expect(new Set(prepareWorkload({ ...OPTIONS, num: 1, keySpaceSize: 3 }).keys).size).toBe(3);
});

test.each([
  { pct50: 20, pct75: 60, fromMs: 20, share: 0.5 },
  { pct50: 20, pct75: 60, fromMs: 60, share: 0.25 },
  { pct50: 20, pct75: 60, fromMs: 200, share: 0.0787 },
  { pct50: 200, pct75: 400, fromMs: 200, share: 0.5 },
])(
  '$share of a lognormal distribution with percentiles $pct50 and $pct75 ms is $fromMs ms or more',
  ({ pct50, pct75, fromMs, share }) =>
    expect(new LogNormal(pct50, pct75).shareFrom(fromMs)).toBeCloseTo(share, 4),
);

test('a lognormal distribution is never negative and almost never huge', () => {
  const distribution = new LogNormal(20, 60);
  expect(distribution.shareFrom(0)).toBe(1);
  expect(distribution.shareFrom(1e9)).toBeCloseTo(0, 9);
});

test('lognormal samples have the shares of their distribution', () => {
  const distribution = new LogNormal(20, 60);
  const random = new SeededRandom(3);
  const values = Array.from({ length: 100_000 }, () => distribution.draw(random));
  for (const bound of [5, 20, 60, 200]) {
    const share = values.filter((value) => value >= bound).length / values.length;
    expect(share).toBeCloseTo(distribution.shareFrom(bound), 2);
  }
});
