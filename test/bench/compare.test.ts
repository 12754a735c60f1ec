import { expect, test } from 'vitest';
import { compareResults, renderComparison, reservations } from '../../bench/lib/compare.ts';
import { caseOf, resultOf } from './results.ts';

const then = resultOf([caseOf([100], [50, 52, 54])]);

test('a comparison divides now by then, contestant by contestant', () => {
  const now = resultOf([caseOf([100], [26, 26, 26])]);
  expect(compareResults(now, then).map(({ contestant, ratio }) => [contestant, ratio])).toEqual([
    ['host', 1],
    ['ours', 0.5],
  ]);
});

test.each([
  { samples: [40, 49], change: 'better' },
  { samples: [49, 51], change: 'within the noise' },
  { samples: [55, 56], change: 'worse' },
])('a change to $samples from 50–54 is $change', ({ samples, change }) => {
  const comparisons = compareResults(resultOf([caseOf([100], samples)]), then);
  expect(comparisons.find(({ contestant }) => contestant === 'ours')?.change).toBe(change);
});

test('cases of another size or name are not compared', () => {
  expect(compareResults(resultOf([{ ...caseOf([1], [1]), size: 99 }]), then)).toEqual([]);
  expect(compareResults(resultOf([{ ...caseOf([1], [1]), name: 'drain' }]), then)).toEqual([]);
  expect(renderComparison(resultOf([]), then)).toContain('no case in common');
});

test('a comparison reports another machine, another Node and smoke runs', () => {
  const machine = { ...then.machine, cpu: 'b', node: '22' };
  expect(reservations({ ...then, machine, quick: true }, then)).toHaveLength(3);
  expect(reservations(then, then)).toEqual([]);
});
