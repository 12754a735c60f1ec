import { expect, test } from 'vitest';
import { viewCase } from '../../bench/lib/case-view.ts';
import { renderReport } from '../../bench/lib/report.ts';
import { renderCase } from '../../bench/lib/table.ts';
import { caseOf, contestant, resultOf } from './results.ts';

test('ratios come first in the table', () => {
  expect(viewCase(caseOf([20], [10])).rows.map(({ cells }) => cells.slice(0, 3))).toEqual([
    ['host', '1', '20'],
    ['ours', '2', '10'],
  ]);
});

test('a contestant that does not take part says why', () => {
  const result = caseOf([20], [10]);
  const contestants = [...result.contestants, { ...contestant('rival', 'rival', []), cannot: 'too far' }];
  expect(renderCase({ ...result, contestants })).toContain('not run: too far');
});

test('the report is one file without scripts, with a chart for every case', () => {
  const html = renderReport(resultOf([{ ...caseOf([20, 22], [10, 11]), note: '<b> & co' }]));
  expect(html).not.toContain('<script');
  expect(html.match(/<svg/g)).toHaveLength(2);
  expect(html).toContain('&lt;b&gt; &amp; co');
});

test('a busy machine is named beside the numbers', () => {
  const result = caseOf([20], [10]);
  expect(renderCase(result)).not.toContain('Other programs');
  expect(renderCase({ ...result, othersLoad: 0.4 })).toContain('Other programs used 40 % of the processors');
});
