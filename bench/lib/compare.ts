/** What `--compare OLD.json` prints: now against then. A change counts only if the two ranges do not overlap. */
import Table from 'cli-table3';
import { samplesOf, type BenchResult, type CaseResult } from './result.ts';
import { formatNumber, summarize } from './statistics.ts';

export interface Comparison {
  readonly part: string;
  readonly case: string;
  readonly contestant: string;
  readonly metric: string;
  readonly then: number;
  readonly now: number;
  /** now / then: below 1 is an improvement, since less is better everywhere. */
  readonly ratio: number;
  readonly change: 'better' | 'worse' | 'within the noise';
}

/** Returns every metric that both results have, matched by name and size of the case. */
export function compareResults(now: BenchResult, then: BenchResult): Comparison[] {
  return now.parts.flatMap(({ name: part, cases }) => {
    const oldCases = then.parts.find(({ name }) => name === part)?.cases ?? [];
    return cases.flatMap((result) => {
      const old = oldCases.find(({ name, size }) => name === result.name && size === result.size);
      return old === undefined ? [] : compareCases(part, result, old);
    });
  });
}

function compareCases(part: string, now: CaseResult, then: CaseResult): Comparison[] {
  return now.contestants.flatMap(({ name: contestant, metrics }) =>
    metrics.flatMap(({ name: metric, samples, isAside = false }) => {
      const oldSamples = samplesOf(then, contestant, metric);
      if (isAside || samples.length === 0 || oldSamples.length === 0) return [];
      return [{ part, case: now.name, contestant, metric, ...compareSamples(samples, oldSamples) }];
    }),
  );
}

function compareSamples(
  now: readonly number[],
  then: readonly number[],
): Pick<Comparison, 'then' | 'now' | 'ratio' | 'change'> {
  const current = summarize(now);
  const old = summarize(then);
  const change = current.max < old.min ? 'better' : current.min > old.max ? 'worse' : 'within the noise';
  const ratio = current.median === old.median ? 1 : current.median / old.median;
  return { then: old.median, now: current.median, ratio, change };
}

/** Returns why the two can hardly be compared: another machine, a smoke run. Empty if they can. */
export function reservations(now: BenchResult, then: BenchResult): string[] {
  const { cpu, node } = now.machine;
  return [
    ...(now.quick || then.quick ? ['at least one is a smoke run: its numbers mean little'] : []),
    ...(cpu === then.machine.cpu ? [] : [`measured on another processor: ${then.machine.cpu}`]),
    ...(node === then.machine.node ? [] : [`measured on another Node: ${then.machine.node}, now ${node}`]),
  ];
}

/** With seven borders they fill a terminal of 80 columns. */
const COLUMN_WIDTHS = [19, 14, 12, 12, 8, 8];

export function renderComparison(now: BenchResult, then: BenchResult): string {
  const comparisons = compareResults(now, then);
  const title = `compared with ${then.date}`;
  const remarks = reservations(now, then).map((line) => `  * ${line}`);
  if (comparisons.length === 0) return [title, ...remarks, '  no case in common', ''].join('\n');
  const table = new Table({
    head: ['contestant', 'metric', 'then', 'now', 'now / then', ''],
    style: { head: [], border: [], compact: true },
    colAligns: ['left', 'left', 'right', 'right', 'right', 'left'],
    colWidths: COLUMN_WIDTHS,
    wordWrap: true,
  });
  for (const [index, each] of comparisons.entries()) {
    if (each.case !== comparisons[index - 1]?.case) {
      table.push([{ content: each.case, colSpan: COLUMN_WIDTHS.length }]);
    }
    const values = [each.then, each.now, each.ratio].map(formatNumber);
    const change = each.change === 'within the noise' ? 'noise' : each.change;
    table.push([each.contestant, each.metric, ...values, change]);
  }
  return [title, ...remarks, table.toString(), ''].join('\n');
}
