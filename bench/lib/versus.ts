/**
 * Who wins, in words. A benchmark of one's own library is believed for what it admits: so every metric in which
 * one of ours is behind the baseline or a rival is named, not only the one the ratio is made of.
 */
import { formatNumber } from './format.ts';
import { samplesOf, type CaseResult, type ContestantResult } from './result.ts';
import { pairedRatios, summarize } from './statistics.ts';

export type Standing = 'ahead' | 'even' | 'behind';

/** One comparison of ours with another contestant of the case, in one metric. */
export interface Versus {
  readonly ours: string;
  readonly other: string;
  readonly metric: string;
  /** other / ours: above 1 is ours ahead. */
  readonly ratio: number;
  readonly standing: Standing;
}

/** Every comparison a contestant of ours stands in. Metrics that stand aside are left out. */
export function comparisonsOf(result: CaseResult, ours: ContestantResult): Versus[] {
  const others = result.contestants.filter(({ role }) => role !== 'ours');
  const metrics = ours.metrics.filter(({ isAside = false }) => !isAside);
  return others.flatMap((other) =>
    metrics.flatMap(({ name: metric }) => {
      const ratios = pairedRatios(samplesOf(other, metric), samplesOf(ours, metric)).filter(
        (ratio) => !Number.isNaN(ratio),
      );
      return ratios.length === 0 ? [] : [compare(ours.name, other.name, metric, ratios)];
    }),
  );
}

function compare(ours: string, other: string, metric: string, ratios: readonly number[]): Versus {
  const { median, min, max } = summarize(ratios);
  const standing = min > 1 ? 'ahead' : max < 1 ? 'behind' : 'even';
  return { ours, other, metric, ratio: median, standing };
}

/** `ahead of all`, or a line for each contestant that it is not ahead of. Even: the rounds went both ways. */
export function describeStanding(result: CaseResult, ours: ContestantResult): string {
  const comparisons = comparisonsOf(result, ours);
  if (comparisons.length === 0) return '';
  const exceptions = comparisons.filter(({ standing }) => standing !== 'ahead');
  if (exceptions.length === 0) return 'ahead of all';
  return [
    ...linesOf(exceptions, 'behind', 'WE LOSE to', result.primaryMetric),
    ...linesOf(exceptions, 'even', 'even with', result.primaryMetric),
  ].join('\n');
}

function linesOf(
  comparisons: readonly Versus[],
  standing: Standing,
  relation: string,
  primary: string,
): string[] {
  const chosen = comparisons.filter((versus) => versus.standing === standing);
  const others = new Set(chosen.map(({ other }) => other));
  return [...others].map((other) => {
    const metrics = chosen
      .filter((versus) => versus.other === other)
      .map((versus) => describe(versus, primary));
    return `${relation} ${other}: ${metrics.join(',\n  ')}`;
  });
}

function describe({ metric, ratio }: Versus, primary: string): string {
  return metric === primary ? formatNumber(ratio) : `${metric} ${formatNumber(ratio)}`;
}
