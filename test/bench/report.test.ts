import { expect, test } from 'vitest';
import { viewCase } from '../../bench/lib/case-view.ts';
import { renderReport } from '../../bench/lib/report.ts';
import { renderCase } from '../../bench/lib/terminal.ts';
import { caseOf, contestant, resultOf } from './results.ts';

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
