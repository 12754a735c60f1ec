import { expect, test } from 'vitest';
import { SeededRandom } from '../../../bench/lib/random.ts';
import {
  describeIntervals,
  describeLatencies,
  drawIntervals,
  drawLatencies,
  expiredShareInTheory,
  LogNormal,
  prepareWorkload,
  RequestStream,
  toleratedShare,
  type WorkloadOptions,
} from '../../../bench/purgatory/workload.ts';

const OPTIONS: WorkloadOptions = {
  ...{ num: 50_000, ratePerS: 100_000, timeoutMs: 200, pct50Ms: 20, pct75Ms: 60 },
  ...{ keys: 3, keySpaceSize: 100, completeBy: 'force' },
};

interface Request {
  readonly arrivesAtMs: number;
  readonly latencyMs: number;
  readonly keys: readonly string[];
}

function requestsOf(stream: RequestStream): Request[] {
  const requests: Request[] = [];
  while (stream.arrivesAtMs !== Infinity) {
    const { arrivesAtMs, latencyMs } = stream;
    requests.push({ arrivesAtMs, latencyMs, keys: stream.takeKeys() });
    stream.advance();
  }
  return requests;
}

const workload = prepareWorkload(OPTIONS);

test('a stream has the requested number of requests, in order, at the requested rate', () => {
  const stream = new RequestStream(workload);
  const arrivals = requestsOf(stream).map(({ arrivesAtMs }) => arrivesAtMs);
  expect(arrivals).toHaveLength(OPTIONS.num);
  expect(arrivals).toEqual(arrivals.toSorted((a, b) => a - b));
  expect(stream.lastArrivalMs).toBe(arrivals.at(-1));
  // One in a hundred intervals is a millisecond: the last of 50 000 arrives at 500 ms, give or take four times 22.
  expect(stream.lastArrivalMs).toBeGreaterThan(410);
  expect(stream.lastArrivalMs).toBeLessThan(590);
});

test('two streams of a workload have the same requests', () => {
  const short = prepareWorkload({ ...OPTIONS, num: 1_000 });
  const first = requestsOf(new RequestStream(short));
  expect(requestsOf(new RequestStream(short))).toEqual(first);
});

test('the share of latencies above the timeout is that of theory', () => {
  const requests = requestsOf(new RequestStream(workload));
  const theory = expiredShareInTheory(OPTIONS);
  expect(theory).toBeCloseTo(0.0787, 4);
  const share = requests.filter(({ latencyMs }) => latencyMs >= OPTIONS.timeoutMs).length / OPTIONS.num;
  expect(Math.abs(share - theory)).toBeLessThan(toleratedShare(theory, OPTIONS.num));
});

test('forced requests all have the same keys', () => {
  const keys = requestsOf(new RequestStream(workload)).map((request) => request.keys);
  expect(new Set(keys[0]).size).toBe(3);
  expect(keys.every((each) => each === keys[0])).toBe(true);
});

test('checked requests have their own keys, all different, from the whole key space', () => {
  const checked = prepareWorkload({ ...OPTIONS, num: 1_000, completeBy: 'check' });
  const keys = requestsOf(new RequestStream(checked)).map((request) => request.keys);
  expect(keys.every((each) => new Set(each).size === 3)).toBe(true);
  expect(new Set(keys.flat()).size).toBe(OPTIONS.keySpaceSize);
});

test('an expired share may be off by half a point, or by more if chance alone can be farther off', () => {
  expect(toleratedShare(0.5, 1_000_000)).toBe(0.005);
  expect(toleratedShare(0.0787, 500_000)).toBe(0.005);
  expect(toleratedShare(0.5, 10_000)).toBeCloseTo(0.02, 9);
});

const POOL_SIZE = 200_000;

test('drawn latencies are whole milliseconds with the requested percentiles', () => {
  const pool = drawLatencies(200, 400, 1, POOL_SIZE);
  expect(pool.every((latency) => Number.isInteger(latency) && latency >= 0)).toBe(true);
  const { pct50, pct75, min, max } = describeLatencies(pool);
  expect(pct50 / 200).toBeCloseTo(1, 1);
  expect(pct75 / 400).toBeCloseTo(1, 1);
  expect(min).toBe(Math.min(...pool.slice(0, 1_000), min));
  expect(max).toBeGreaterThan(pct75);
});

test('drawn intervals are whole milliseconds that keep the rate, because fractions are carried on', () => {
  const pool = drawIntervals(100_000, 1, POOL_SIZE);
  expect(pool.every(Number.isInteger)).toBe(true);
  // Without the carried fractions all of them would be 0.
  const { ratePerS, min, max } = describeIntervals(pool);
  expect(ratePerS / 100_000).toBeCloseTo(1, 1);
  expect({ min, max }).toEqual({ min: 0, max: 1 });
});

test('drawn intervals are exponential: 1 / e of them are longer than the mean', () => {
  const pool = drawIntervals(1, 1, POOL_SIZE);
  const longer = pool.filter((interval) => interval >= 1_000).length / POOL_SIZE;
  expect(longer).toBeCloseTo(1 / Math.E, 2);
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
