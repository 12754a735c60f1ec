import { expect, test } from 'vitest';
import { describeStanding, viewCase } from '../../bench/lib/case-view.ts';
import { compareResults, renderComparison, reservations } from '../../bench/lib/compare.ts';
import { atLeast, atMost, atMostAbove } from '../../bench/lib/part.ts';
import { renderReport } from '../../bench/lib/report.ts';
import { describeTarget, judge, type CaseResult } from '../../bench/lib/result.ts';
import { median, paired, quantileOfSorted, ratioOf, summarize } from '../../bench/lib/statistics.ts';
import { renderCase, renderSummary } from '../../bench/lib/terminal.ts';
import { caseOf, contestant, resultOf } from './results.ts';

test('the median is the middle value, or the mean of the two in the middle', () => {
  const samples = [100, 9, 20];
  expect([median(samples), samples]).toEqual([20, [100, 9, 20]]); // sorted as numbers, in a copy
  expect(median([4, 1, 2, 3])).toBe(2.5);
  expect(median([7])).toBe(7);
  expect(median([])).toBeNaN();
});

test('quantiles interpolate between the closest ranks', () => {
  expect(quantileOfSorted([0, 10, 20, 30], 0)).toBe(0);
  expect(quantileOfSorted([0, 10, 20, 30], 1)).toBe(30);
  expect(quantileOfSorted([0, 10], 0.25)).toBe(2.5);
});

test('one outlier moves the range, not the median', () =>
  expect(summarize([10, 11, 12, 11, 500])).toEqual({ median: 11, min: 10, max: 500 }));

test('ratios are computed round by round, and a round that only one contestant has is left out', () => {
  expect(paired([10, 90], [5, 30], ratioOf)).toEqual([2, 3]);
  expect(paired([10, 90, 70], [5], ratioOf)).toEqual([2]);
});

const ratio = atLeast('ours', 'time', 2.5);

test('a ratio target is met at its bound and missed below it', () => {
  expect(judge(ratio, caseOf([250], [100]), false)).toMatchObject({ actual: 2.5, verdict: 'met' });
  expect(judge(ratio, caseOf([249], [100]), false)).toMatchObject({ actual: 2.49, verdict: 'missed' });
});

test('a target is judged by the median over the rounds, not by the best round', () =>
  expect(judge(ratio, caseOf([100, 100, 900], [100, 100, 100]), false)).toMatchObject({ actual: 1 }));

test('a limit depends on our contestant alone', () => {
  const limit = atMost('ours', 'time', 400);
  expect(judge(limit, caseOf([1], [400]), false).verdict).toBe('met');
  expect(judge(limit, caseOf([1], [401]), false).verdict).toBe('missed');
});

test('an excess target is relative to the baseline', () => {
  const excess = atMostAbove('ours', 'time', 2);
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
  const target = { ...ratio, against: 'rival' };
  expect(judge(target, withRival, false)).toMatchObject({ actual: 5, verdict: 'met' });
  expect(judge(ratio, withRival, false)).toMatchObject({ actual: 0.9, verdict: 'missed' });
  expect(describeTarget(target, 'host', 'ns/op')).toBe('time: rival / ours at least 2.5');
});

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

test('the first column of a table has the ratios', () =>
  expect(viewCase(caseOf([20], [10])).rows.map(({ cells }) => cells.slice(0, 3))).toEqual([
    ['host', '1', '20'],
    ['ours', '2', '10'],
  ]));

test('the table shows why a contestant does not take part', () => {
  const result = caseOf([20], [10]);
  const contestants = [...result.contestants, { ...contestant('rival', 'rival', []), cannot: 'too far' }];
  expect(renderCase({ ...result, contestants })).toContain('not run: too far');
});

test('a table that is wider than a terminal becomes several tables, each with the names', () => {
  const base = caseOf([20, 22], [10, 11]);
  const metrics = ['p50', 'p99', 'max', 'bytes', 'pauses', 'wake-ups'].map((name) => ({
    ...{ name, unit: 'ns/op', samples: [123_456, 234_567] },
  }));
  const contestants = base.contestants.map((each) => ({ ...each, metrics: [...each.metrics, ...metrics] }));
  const lines = renderCase({ ...base, contestants }).split('\n');
  expect(Math.max(...lines.map(({ length }) => length))).toBeLessThanOrEqual(80);
  expect(lines.filter((line) => /^│ host +│/.test(line)).length).toBeGreaterThan(1);
  for (const { name } of metrics) expect(lines.join('\n')).toContain(name);
});

test('the report is one file without scripts, with a chart for every case', () => {
  const html = renderReport(resultOf([{ ...caseOf([20, 22], [10, 11]), note: '<b> & co' }]));
  expect(html).not.toContain('<script');
  expect(html.match(/<div class="chart"/g)).toHaveLength(2);
  expect(html).toContain('&lt;b&gt; &amp; co');
});

test('a chart has round numbers on its axis, and the median of each contestant in numbers', () => {
  const html = renderReport(resultOf([caseOf([187, 193], [61, 63])]));
  const [ofRatios = '', ofCase = ''] = html.match(/<div class="chart">.*?<\/span><\/div>/gs) ?? [];
  const textsOf = (chart: string): string[] =>
    [...chart.matchAll(/>([^<>]+)</g)].map(([, text = '']) => text);
  expect(textsOf(ofCase)).toEqual(expect.arrayContaining(['0', '50', '100', '150', '200', '190', '62']));
  expect(textsOf(ofRatios)).toEqual(expect.arrayContaining(['1', '10', 'baseline / ours']));
});

test('a case shows a note if other programs kept the machine busy', () => {
  const result = caseOf([20], [10]);
  expect(renderCase(result)).not.toContain('Other programs');
  expect(renderCase({ ...result, othersLoad: 0.4 })).toContain('Other programs used 40 % of the processors');
});

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
