/**
 * Targets: what a case promises to reach, and whether it did. Judged on medians over the rounds, and only by a
 * full run: a smoke run is too short to judge anything.
 */
import { findContestant, samplesOf, type CaseResult, type Verdict } from './result.ts';
import { median, pairedDifferences, pairedRatios } from './statistics.ts';

/** All are floors on us; the baseline of the case is what they compare with, or a rival that is named. */
export type Target =
  | {
      readonly kind: 'ratio';
      readonly contestant: string;
      readonly metric: string;
      readonly atLeast: number;
      readonly against?: string;
    }
  | { readonly kind: 'limit'; readonly contestant: string; readonly metric: string; readonly atMost: number }
  | {
      readonly kind: 'excess';
      readonly contestant: string;
      readonly metric: string;
      readonly atMost: number;
    };

export interface JudgedTarget {
  readonly target: Target;
  /** `null` where nothing could be measured. */
  readonly actual: number | null;
  readonly verdict: Verdict;
}

export function judge(target: Target, result: CaseResult, isQuick: boolean): JudgedTarget {
  const actual = actualOf(target, result);
  if (isQuick) return { target, actual, verdict: 'not judged' };
  if (actual === null) return { target, actual, verdict: 'missed' };
  const isMet = target.kind === 'ratio' ? actual >= target.atLeast : actual <= target.atMost;
  return { target, actual, verdict: isMet ? 'met' : 'missed' };
}

/** The target in words: `task: time, host / task at least 2.5`. */
export function describeTarget(target: Target, baseline: string, unit: string): string {
  const { contestant, metric } = target;
  const suffix = unit === '' ? '' : ` ${unit}`;
  if (target.kind === 'ratio') {
    return `${metric}: ${target.against ?? baseline} / ${contestant} at least ${target.atLeast}`;
  }
  if (target.kind === 'limit') return `${metric}: ${contestant} at most ${target.atMost}${suffix}`;
  return `${metric}: ${contestant} at most ${target.atMost}${suffix} above ${baseline}`;
}

function actualOf(target: Target, result: CaseResult): number | null {
  const own = samplesOf(findContestant(result, target.contestant), target.metric);
  const other = (target.kind === 'ratio' ? target.against : undefined) ?? result.baseline;
  const base = samplesOf(findContestant(result, other), target.metric);
  const value = median(
    target.kind === 'limit'
      ? own
      : target.kind === 'ratio'
        ? pairedRatios(base, own)
        : pairedDifferences(own, base),
  );
  return Number.isFinite(value) ? value : null;
}
