import { expect, test } from 'vitest';
import {
  expiredShareInTheory,
  prepareWorkload,
  RequestStream,
  toleratedShare,
  type WorkloadOptions,
} from '../../../bench/purgatory/workload.ts';

const OPTIONS: WorkloadOptions = {
  num: 50_000,
  ratePerS: 100_000,
  timeoutMs: 200,
  pct50Ms: 20,
  pct75Ms: 60,
  keys: 3,
  keySpaceSize: 100,
  completeBy: 'force',
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

test('a stream has as many requests as asked for, in order, at the rate asked for', () => {
  const stream = new RequestStream(workload);
  const arrivals = requestsOf(stream).map(({ arrivesAtMs }) => arrivesAtMs);
  expect(arrivals).toHaveLength(OPTIONS.num);
  expect(arrivals).toEqual(arrivals.toSorted((a, b) => a - b));
  expect(stream.lastArrivalMs).toBe(arrivals.at(-1));
  // One in a hundred intervals is a millisecond: the last of 50 000 arrives at 500 ms, give or take four times 22.
  expect(stream.lastArrivalMs).toBeGreaterThan(410);
  expect(stream.lastArrivalMs).toBeLessThan(590);
});

test('every contestant gets the same requests', () => {
  const first = requestsOf(new RequestStream(workload));
  expect(requestsOf(new RequestStream(workload))).toEqual(first);
});

test('the share of long latencies is that of theory', () => {
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

test('checked requests have keys of their own, all different, from the whole key space', () => {
  const checked = prepareWorkload({ ...OPTIONS, num: 1_000, completeBy: 'check' });
  const keys = requestsOf(new RequestStream(checked)).map((request) => request.keys);
  expect(keys.every((each) => new Set(each).size === 3)).toBe(true);
  expect(new Set(keys.flat()).size).toBe(OPTIONS.keySpaceSize);
});

test('half a point is tolerated, and more only where chance alone can be farther off', () => {
  expect(toleratedShare(0.5, 1_000_000)).toBe(0.005);
  expect(toleratedShare(0.0787, 500_000)).toBe(0.005);
  expect(toleratedShare(0.5, 10_000)).toBeCloseTo(0.02, 9);
});
