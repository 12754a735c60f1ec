/** Now against then: what `--compare OLD.json` prints. A change counts only when the two ranges do not overlap. */
import Table from 'cli-table3';
import { formatNumber } from './format.ts';
import { samplesOf, type BenchResult, type CaseResult, type ContestantResult } from './result.ts';
import { summarize } from './statistics.ts';

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

/** Every metric that both results have, matched by name. Cases of one of them only are left out. */
export function compareResults(now: BenchResult, then: BenchResult): Comparison[] {
  return now.parts.flatMap((part) => {
    const oldPart = then.parts.find(({ name }) => name === part.name);
    return part.cases.flatMap((result) => {
      const oldCase = oldPart?.cases.find(({ name }) => name === result.name);
      return oldCase === undefined ? [] : compareCases(part.name, result, oldCase);
    });
  });
}

/** Why the two can hardly be compared: another machine, another mode. Empty if they can. */
export function reservations(now: BenchResult, then: BenchResult): string[] {
  const { cpu, node } = now.machine;
  return [
    ...(now.quick || then.quick ? ['a smoke run is involved: its numbers mean little'] : []),
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
  for (const [
    index,
    { contestant, metric, then: old, now: current, ratio, change, ...rest },
  ] of comparisons.entries()) {
    const values = [formatNumber(old), formatNumber(current), formatNumber(ratio)];
    if (rest.case !== comparisons[index - 1]?.case)
      table.push([{ content: rest.case, colSpan: COLUMN_WIDTHS.length }]);
    table.push([contestant, metric, ...values, change === 'within the noise' ? 'noise' : change]);
  }
  return [title, ...remarks, table.toString(), ''].join('\n');
}

function compareCases(part: string, now: CaseResult, then: CaseResult): Comparison[] {
  return now.contestants.flatMap((contestant) => {
    const old = then.contestants.find(({ name }) => name === contestant.name);
    if (old === undefined || now.size !== then.size) return [];
    return compareContestants(contestant, old).map((change) => ({ part, case: now.name, ...change }));
  });
}

function compareContestants(
  now: ContestantResult,
  then: ContestantResult,
): Omit<Comparison, 'part' | 'case'>[] {
  return now.metrics.flatMap(({ name: metric, samples, isAside = false }) => {
    const oldSamples = samplesOf(then, metric);
    if (isAside || samples.length === 0 || oldSamples.length === 0) return [];
    return [{ contestant: now.name, metric, ...compareSamples(samples, oldSamples) }];
  });
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
