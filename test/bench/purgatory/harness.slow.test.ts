import { expect, test } from 'vitest';
import { renderHarnessResult } from '../../../bench/purgatory/harness-command.ts';
import { checkShare, CompletionQueue } from '../../../bench/purgatory/harness.ts';
import { Tally } from '../../../bench/lib/work.ts';
import { LogNormal } from '../../../bench/purgatory/workload.ts';
import { runNode } from '../../run-program.ts';

test('an expired request counts as late only if it is delivered after its timeout', () => {
  const queue = new CompletionQueue();
  const delivered: number[] = [];
  const add = (completesAtMs: number, hasExpired: boolean): void => {
    const forceComplete = (): boolean => delivered.push(completesAtMs) > 0;
    queue.add({ completesAtMs, hasExpired, forceComplete }, completesAtMs + 2);
  };
  add(10, true);
  add(10, false);
  add(13, true);
  queue.deliver(9);
  expect([queue.nextAtMs, queue.late]).toEqual([10, 0]);
  queue.deliver(12);
  expect([queue.nextAtMs, queue.late]).toEqual([13, 1]);
  queue.deliver(14);
  expect([queue.nextAtMs, queue.late]).toEqual([Infinity, 1]);
  expect(delivered).toEqual([10, 10, 13]);
});

test('an expired share that is far from theory is a problem that names both', () => {
  expect(checkShare(0.0795, 0.0787, 1_000_000)).toBeUndefined();
  expect(checkShare(0.57, 0.0787, 1_000_000)).toBe('57.00 % expired; 7.87 % should, give or take 0.50 %');
});

test('an expired share may be off by half a point, or by more if chance alone can be farther off', () => {
  expect(checkShare(0.504, 0.5, 1_000_000)).toBeUndefined();
  expect(checkShare(0.506, 0.5, 1_000_000)).toContain('50.60 % expired');
  expect(checkShare(0.519, 0.5, 10_000)).toBeUndefined();
  expect(checkShare(0.521, 0.5, 10_000)).toContain('give or take 2.00 %');
});

test('a request that completes twice or never is a problem', () => {
  let isDone = false;
  const tally = new Tally(2);
  tally.finish = () => void (isDone = true);
  tally.complete(1);
  expect(tally.check()).toBe('request 0 completed 0 times');
  expect(isDone).toBe(false);
  tally.complete(1);
  expect(isDone).toBe(true);
  expect(tally.check()).toBe('request 0 completed 0 times');
  tally.complete(0);
  expect(tally.check()).toBe('request 1 completed 2 times');
});

test("the result line of the harness has Kafka's columns", () => {
  const result = {
    ...{ elapsedMs: 10_129.4, targetRatePerS: 100_735.36, actualRatePerS: 100_725.02 },
    ...{ cpuMs: 2_622.3, loopDelayP99Ms: 1.7, peakHeapBytes: 3 * 2 ** 20 },
    ...{ deadEntries: 0, expiredShare: 0.0785, expiredInTheory: 0.0787, lateShare: 0, problem: undefined },
  };
  const collections = { count: 70, totalMs: 284, longestMs: 9, young: { count: 60, totalMs: 255 } };
  const [, line, ...rest] = renderHarnessResult(result, collections).split('\n');
  expect(line).toBe('10129\t100735.360000\t100725.020000\t2622\t60 10\t255 29');
  expect(rest.join('\n')).toContain('# expired: 7.85 %; in theory 7.87 %');
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

test('real time: the harness prints the result line and the expired share', () => {
  const line = '--num 500 --rate 5000 --timeout 200 --pct50 20 --pct75 60 --key-space-size 100';
  const { status, stdout, stderr } = runNode([
    '--import',
    'tsx',
    'bench/purgatory-performance.ts',
    ...line.split(' '),
  ]);
  expect(status).toBe(0);
  expect(stderr).toMatch(/^warning: measuring the sources, not a build.*\n$/);
  expect(stdout).toMatch(/^\d+\t\d+\.\d{6}\t\d+\.\d{6}\t\d+\t\d+ \d+\t\d+ \d+$/m);
  expect(stdout).toMatch(/^# expired: \d+\.\d\d %; in theory 7\.87 %$/m);
});
