import { expect, test } from 'vitest';
import { describeStanding } from '../../bench/lib/case-view.ts';
import type { CaseResult } from '../../bench/lib/result.ts';
import { renderCase, renderSummary } from '../../bench/lib/terminal.ts';
import { caseOf, contestant, resultOf } from './results.ts';

function standing(result: CaseResult): string {
  const ours = result.contestants.find(({ role }) => role === 'ours');
  return ours === undefined ? '' : describeStanding(result, ours);
}

test('a contestant that is ahead in every round is ahead of all', () =>
  expect(standing(caseOf([20, 30], [10, 10]))).toBe('ahead of all'));

test('a contestant that is behind in every round loses, and table and summary name the loss', () => {
  const result = caseOf([10, 10], [20, 20]);
  expect(standing(result)).toBe('WE LOSE to host: 0.50');
  expect(renderCase(result)).toContain('WE LOSE to host: 0.50');
  expect(renderSummary(resultOf([result]))).toContain('fill: ours loses to host in time: 0.50');
});

test('contestants whose rounds do not agree are even', () =>
  expect(standing(caseOf([10, 30], [20, 20]))).toBe('even with host: 1'));

test('a loss to a rival counts as much as one to the baseline', () => {
  const result = caseOf([30, 30], [10, 10]);
  const contestants = [...result.contestants, contestant('rival', 'rival', [5, 5])];
  expect(standing({ ...result, contestants })).toBe('WE LOSE to rival: 0.50');
});
