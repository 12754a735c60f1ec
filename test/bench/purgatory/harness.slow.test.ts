import { expect, test } from 'vitest';
import { renderHarnessResult } from '../../../bench/purgatory/harness-command.ts';
import { checkShare, CompletionQueue, runHarness } from '../../../bench/purgatory/harness.ts';
import { Tally } from '../../../bench/lib/work.ts';
import { KINDS, type PurgatoryKind } from '../../../bench/purgatory/purgatories.ts';
import { prepareWorkload, type Workload } from '../../../bench/purgatory/workload.ts';

const NUM = 500;

/** A tenth of a second. Latencies are `shortMs` or more than the timeout; with 0, a busy machine changes nothing. */
function workloadFor(shortMs = 0): Workload {
  const workload = prepareWorkload({
    ...{ num: NUM, ratePerS: 5_000, timeoutMs: 150, pct50Ms: 20, pct75Ms: 60 },
    ...{ keys: 3, keySpaceSize: 50 },
  });
  const latenciesMs = workload.latenciesMs.map((latencyMs) => (latencyMs < 150 ? shortMs : 1_000));
  return { ...workload, latenciesMs };
}

/** Blocks the event loop, and leaves the processor to other tests. */
function stall(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
}

/** The same kind, with a function that is called after each request and with additional watch entries. */
function changed(kind: PurgatoryKind, onSent: (id: number) => void, moreWatched = 0): PurgatoryKind {
  return {
    ...kind,
    newPurgatory: () => {
      const purgatory = kind.newPurgatory();
      let sent = 0;
      return {
        tryCompleteElseWatch: (request, keys) => {
          const isCompleted = purgatory.tryCompleteElseWatch(request, keys);
          onSent(sent++);
          return isCompleted;
        },
        checkAndComplete: (key) => purgatory.checkAndComplete(key),
        get watched() {
          return purgatory.watched + moreWatched;
        },
        close: () => purgatory.close(),
      };
    },
  };
}

test.each(KINDS)('real time: the harness measures $id', async (kind) => {
  const result = await runHarness(workloadFor(), kind);
  expect(result.problem).toBeUndefined();
  expect(result.elapsedMs).toBeGreaterThanOrEqual(149);
  expect(result.expiredShare).toBeGreaterThan(0);
  expect(result.expiredShare).toBeLessThan(0.3);
});

/** Stalls twice, the second time after the last request was sent: all that is pending expires before another turn. */
test.each(KINDS)('real time: $id passes when the loop stalls', async (kind) => {
  const stalling = changed(kind, (id) => {
    if (id === NUM / 2 || id === NUM - 1) stall(400);
  });
  const result = await runHarness(workloadFor(100), stalling);
  expect(result.problem).toBeUndefined();
  expect(result.elapsedMs).toBeGreaterThanOrEqual(799);
});

test('real time: a purgatory that keeps completed operations fails its self-check', async () => {
  const [kind] = KINDS.filter(({ id }) => id === 'ours');
  const hoarder = changed(kind as PurgatoryKind, () => undefined, 3);
  const { problem } = await runHarness(workloadFor(), hoarder);
  expect(problem).toMatch(/too many watch entries|watch entries are left/);
});

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
