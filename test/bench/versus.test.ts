import { expect, test } from 'vitest';
import { describeStanding } from '../../bench/lib/versus.ts';
import { renderCase } from '../../bench/lib/table.ts';
import type { CaseResult } from '../../bench/lib/result.ts';
import { renderSummary } from '../../bench/lib/summary.ts';
import { caseOf, contestant, resultOf } from './results.ts';

function standing(result: CaseResult): string {
  const ours = result.contestants.find(({ role }) => role === 'ours');
  return ours === undefined ? '' : describeStanding(result, ours);
}

test('ahead in every round is ahead', () => {
  expect(standing(caseOf([20, 30], [10, 10]))).toBe('ahead of all');
});

test('behind in every round is a loss, and said so', () => {
  const result = caseOf([10, 10], [20, 20]);
  expect(standing(result)).toBe('WE LOSE to host: 0.50');
  expect(renderCase(result)).toContain('WE LOSE to host: 0.50');
  expect(renderSummary(resultOf([result]))).toContain('fill: ours loses to host in time: 0.50');
});

test('rounds that went both ways are even', () => {
  expect(standing(caseOf([10, 30], [20, 20]))).toBe('even with host: 1');
});

test('a loss to a rival counts as much as one to the baseline', () => {
  const result = caseOf([30, 30], [10, 10]);
  const contestants = [...result.contestants, contestant('rival', 'rival', [5, 5])];
  expect(standing({ ...result, contestants })).toBe('WE LOSE to rival: 0.50');
});
