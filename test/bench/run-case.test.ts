import { afterEach, beforeEach, expect, test } from 'vitest';
import { CollectorWatch } from '../../bench/lib/collector.ts';
import { bulk, micro, scenario } from '../../bench/lib/kinds.ts';
import type { BulkRun, MicroRun, OpenBulk, Scenario } from '../../bench/lib/kinds.ts';
import { atLeast, ours, rival, unable, type Contestant } from '../../bench/lib/part.ts';
import { problemsOf } from '../../bench/lib/result.ts';
import { rotate, runCase, type RunOptions } from '../../bench/lib/run-case.ts';
import { throwing } from '../timer/support/errors.ts';
import { resultOf } from './results.ts';

let options: RunOptions;
let steps: Parameters<RunOptions['onStep']>[];

beforeEach(() => {
  steps = [];
  options = { isQuick: false, collector: new CollectorWatch(), onStep: (...step) => steps.push(step) };
});

afterEach(() => options.collector.stop());

const row = { size: { full: 100, quick: 10, of: 'items' }, rounds: 2 };

/** A contestant whose self-check finds `problem`. */
function doing(name: string, problem?: string): Contestant<OpenBulk> {
  return ours(name, (count) => ({ run: () => count, check: () => problem }));
}

test('contestants alternate, forwards and backwards, and each of them starts once', () => {
  const orders = [0, 1, 2, 3].map((round) => rotate(['a', 'b', 'c'], round).join(''));
  expect(orders).toEqual(['abc', 'cba', 'bca', 'bac']);
});

test('a bulk case reports time, collector and details for every round', async () => {
  const details = [{ name: 'stall', unit: 'ms' }];
  const open = (count: number): BulkRun => ({
    run: () => count,
    check: () => undefined,
    details: () => ({ stall: 3 }),
  });
  const definition = bulk({ ...row, name: 'fill', details, contestants: () => [ours('one', open)] });
  const result = await runCase(definition, options);
  expect(result.size).toBe(100);
  expect(result.contestants[0]?.metrics.map(({ name, samples }) => [name, samples.length])).toEqual([
    ['time', 2],
    ['collector', 2],
    ['stall', 2],
  ]);
  expect(steps).toEqual([
    ['fill: one', 0, 2],
    ['fill: one', 1, 2],
  ]);
});

test('a bulk case reports the bytes that the run left behind', async () => {
  let kept: Float64Array[] = [];
  const open = (count: number): BulkRun => ({
    run: () => {
      kept = Array.from({ length: count }, () => new Float64Array(1_000));
      return count;
    },
    check: () => (kept.length === count ? undefined : 'lost'),
    close: () => void (kept = []),
  });
  const contestants = (): Contestant<OpenBulk>[] => [ours('one', open)];
  const definition = bulk({ ...row, name: 'keep', measuresBytes: true, contestants });
  const result = await runCase(definition, options);
  const bytes = result.contestants[0]?.metrics.find(({ name }) => name === 'bytes')?.samples[1] ?? 0;
  expect(bytes).toBeGreaterThan(8_000);
  expect(bytes).toBeLessThan(9_500);
});

test('a bulk case warms each contestant up with a tenth of the size, and closes every run', async () => {
  const sizes: number[] = [];
  let closed = 0;
  const open = (count: number): BulkRun => {
    let isOpen = true;
    return {
      run: () => sizes.push(count),
      check: () => undefined,
      close: () => {
        closed += isOpen ? 1 : 0;
        isOpen = false;
      },
    };
  };
  await runCase(bulk({ ...row, name: 'fill', contestants: () => [ours('one', open)] }), options);
  expect(sizes).toEqual([10, 100, 100]);
  expect(closed).toBe(3);
});

test('a failed self-check and an exception fail the run, and the other contestants are still measured', async () => {
  const broken = ours('broken', throwing(new Error('no way')));
  const contestants = (): Contestant<OpenBulk>[] => [doing('good'), doing('idle', 'did nothing'), broken];
  const result = await runCase(bulk({ ...row, name: 'fill', contestants }), options);
  expect(result.contestants.map(({ problems }) => problems.length)).toEqual([0, 2, 2]);
  expect(problemsOf(resultOf([result]))[0]).toBe('timer / fill / idle: did nothing');
});

test('benchmark.js drives a micro case in batches, and its operations are counted', async () => {
  let operations = 0;
  const open = (): MicroRun => ({
    run: (count) => {
      for (let done = 0; done < count; done++) operations++;
    },
    check: () => (operations > 0 ? undefined : 'did nothing'),
  });
  const definition = micro({ ...row, name: 'count', contestants: () => [ours('one', open)] });
  const result = await runCase(definition, options);
  const [time] = result.contestants[0]?.metrics ?? [];
  expect(time?.samples).toHaveLength(2);
  expect(time?.samples.every((ns) => ns > 0 && ns < 1_000)).toBe(true);
});

test('an error inside benchmark.js is a failed self-check', async () => {
  const open = (): MicroRun => ({ run: throwing(new Error('in the loop')), check: () => undefined });
  const definition = micro({ ...row, name: 'count', contestants: () => [ours('one', open)] });
  const result = await runCase(definition, options);
  expect(result.contestants[0]?.problems[0]).toContain('in the loop');
});

const lateBySeven: Scenario = () => Promise.resolve({ values: { lateness: 7 } });

test('a scenario reports its own metrics, and a contestant that cannot take part is not run', async () => {
  const definition = scenario({
    ...row,
    name: 'wait',
    metrics: [{ name: 'lateness', unit: 'ms' }],
    contestants: () => [ours('one', lateBySeven), unable('two', 'no clock')],
  });
  const result = await runCase(definition, { ...options, isQuick: true });
  expect(result.contestants[0]?.metrics[0]?.samples).toEqual([7]);
  expect(result.contestants[1]).toMatchObject({ cannot: 'no clock', problems: [] });
  expect(steps).toEqual([['wait: one', 0, 1]]);
});

test('a target against a rival that cannot take part is left out, and those against others are judged', async () => {
  const definition = scenario({
    ...row,
    name: 'wait',
    metrics: [{ name: 'lateness', unit: 'ms' }],
    contestants: () => [ours('one', lateBySeven), rival('two', lateBySeven), unable('three', 'no clock')],
    targets: ['two', 'three'].map((against) => atLeast('one', 'lateness', 1, against)),
  });
  const { targets } = await runCase(definition, options);
  expect(targets).toMatchObject([{ target: { against: 'two' }, actual: 1 }]);
});
