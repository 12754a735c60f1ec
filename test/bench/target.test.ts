import { expect, test } from 'vitest';
import type { Target } from '../../bench/lib/part.ts';
import { describeTarget, judge } from '../../bench/lib/result.ts';
import { caseOf, contestant } from './results.ts';

const ratio: Target = { kind: 'ratio', contestant: 'ours', metric: 'time', atLeast: 2.5 };

test('a ratio target is met at its bound and missed below it', () => {
  expect(judge(ratio, caseOf([250], [100]), false)).toMatchObject({ actual: 2.5, verdict: 'met' });
  expect(judge(ratio, caseOf([249], [100]), false)).toMatchObject({ actual: 2.49, verdict: 'missed' });
});

test('a target is judged by the median over the rounds, not by the best round', () =>
  expect(judge(ratio, caseOf([100, 100, 900], [100, 100, 100]), false)).toMatchObject({ actual: 1 }));

test('a limit depends on our contestant alone', () => {
  const limit: Target = { kind: 'limit', contestant: 'ours', metric: 'time', atMost: 400 };
  expect(judge(limit, caseOf([1], [400]), false).verdict).toBe('met');
  expect(judge(limit, caseOf([1], [401]), false).verdict).toBe('missed');
});

test('an excess target is relative to the baseline', () => {
  const excess: Target = { kind: 'excess', contestant: 'ours', metric: 'time', atMost: 2 };
  expect(judge(excess, caseOf([10], [12]), false)).toMatchObject({ actual: 2, verdict: 'met' });
  expect(judge(excess, caseOf([10], [13]), false)).toMatchObject({ actual: 3, verdict: 'missed' });
});

test('a smoke run has the value of a target and does not judge it', () =>
  expect(judge(ratio, caseOf([1], [100]), true)).toMatchObject({ actual: 0.01, verdict: 'not judged' }));

test('a target whose metric was not measured is missed', () => {
  expect(judge(ratio, caseOf([], [100]), false)).toMatchObject({ actual: null, verdict: 'missed' });
  expect(judge({ ...ratio, contestant: 'unknown' }, caseOf([1], [1]), false).verdict).toBe('missed');
});

test('the description of a target names what it compares', () =>
  expect(describeTarget(ratio, 'host', 'ns/op')).toBe('time: host / ours at least 2.5'));

test('a ratio target can name a rival in place of the baseline', () => {
  const result = caseOf([90], [100]);
  const rival = contestant('rival', 'rival', [500]);
  const withRival = { ...result, contestants: [...result.contestants, rival] };
  const target: Target = { ...ratio, against: 'rival' };
  expect(judge(target, withRival, false)).toMatchObject({ actual: 5, verdict: 'met' });
  expect(judge(ratio, withRival, false)).toMatchObject({ actual: 0.9, verdict: 'missed' });
  expect(describeTarget(target, 'host', 'ns/op')).toBe('time: rival / ours at least 2.5');
});
