/** The last lines of a run: targets met, missed, and where we lose. A smoke run is too short to say either. */
import { formatNumber } from './format.ts';
import { describeOthersLoad } from './others-load.ts';
import type { BenchResult, CaseResult } from './result.ts';
import { describeTarget } from './target.ts';
import { comparisonsOf, type Versus } from './versus.ts';

export function summarizeTargets(result: BenchResult): string {
  const all = casesOf(result).flatMap(({ targets }) => targets);
  if (all.length === 0) return 'No targets.';
  if (result.quick) return `${all.length} targets, not judged in a smoke run.`;
  const met = all.filter(({ verdict }) => verdict === 'met').length;
  const busy = casesOf(result).filter(
    ({ othersLoad }) => describeOthersLoad(othersLoad) !== undefined,
  ).length;
  const doubt =
    busy === 0 ? '' : ` In ${busy} cases other programs kept the machine busy: believe those less.`;
  return `${met} of ${all.length} targets met.${doubt}`;
}

export function renderSummary(result: BenchResult): string {
  const missed = casesOf(result).flatMap((each) => missedOf(each));
  const lost = result.quick ? [] : casesOf(result).flatMap((each) => lostOf(each));
  return [
    summarizeTargets(result),
    ...missed.map((line) => `  MISSED  ${line}`),
    ...(lost.length === 0 ? [] : ['Where we lose (other / ours):', ...lost.map((line) => `  ${line}`)]),
    '',
  ].join('\n');
}

function casesOf(result: BenchResult): CaseResult[] {
  return result.parts.flatMap(({ cases }) => cases);
}

function missedOf(result: CaseResult): string[] {
  return result.targets
    .filter(({ verdict }) => verdict === 'missed')
    .map(({ target, actual }) => {
      const measured = actual === null ? 'not measured' : formatNumber(actual);
      return `${result.name}: ${describeTarget(target, result.baseline, '')} — ${measured}`;
    });
}

function lostOf(result: CaseResult): string[] {
  return result.contestants
    .filter(({ role }) => role === 'ours')
    .flatMap((ours) => comparisonsOf(result, ours))
    .filter(({ standing }) => standing === 'behind')
    .map((versus) => describeLoss(result.name, versus));
}

function describeLoss(caseName: string, { ours, other, metric, ratio }: Versus): string {
  return `${caseName}: ${ours} loses to ${other} in ${metric}: ${formatNumber(ratio)}`;
}
