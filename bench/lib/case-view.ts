/**
 * A case as rows of text, which the terminal and the HTML report show alike, and which contestant is ahead. Every metric
 * in which ours is behind the baseline or a rival is named, not only the primary one.
 */
import { describeOthersLoad } from './machine.ts';
import { casesOf, describeTarget, samplesOf } from './result.ts';
import type { BenchResult, CaseResult, ContestantResult, JudgedTarget } from './result.ts';
import { formatNumber, formatSamples, paired, ratioOf, summarize } from './statistics.ts';

export interface CaseView {
  readonly title: string;
  readonly head: readonly string[];
  readonly rows: readonly CaseRow[];
  readonly targets: readonly TargetView[];
  /** The load of other programs, if it was high, the note of the case, and the notes of its contestants. */
  readonly notes: readonly string[];
}

export interface CaseRow {
  readonly role: ContestantResult['role'];
  readonly cells: readonly string[];
  /** Why the contestant does not take part; replaces all cells but the first. */
  readonly cannot?: string | undefined;
}

export interface TargetView {
  readonly verdict: JudgedTarget['verdict'];
  readonly text: string;
}

export function viewCase(result: CaseResult): CaseView {
  const { name, size, sizeOf, baseline, contestants, note } = result;
  const metrics = contestants[0]?.metrics ?? [];
  const rounds = Math.max(0, ...contestants.flatMap((c) => c.metrics.map(({ samples }) => samples.length)));
  const sizes = sizeOf === '' ? [] : [`${formatNumber(size)} ${sizeOf}`];
  const ownNotes = contestants.map((each) => each.note && `${each.name}: ${each.note}`);
  return {
    title: `${name} — ${[...sizes, `${rounds} ${rounds === 1 ? 'round' : 'rounds'}`].join(', ')}`,
    head: [
      '',
      ...(baseline === '' ? [] : [`${baseline}\n/ this`]),
      ...metrics.map((each) => [...each.name.split(' '), each.unit].join('\n').trimEnd()),
      'ours against the others',
    ],
    rows: contestants.map((contestant) => viewContestant(result, contestant)),
    targets: result.targets.map((judged) => {
      const unit = metrics.find((each) => each.name === judged.target.metric)?.unit ?? '';
      return { verdict: judged.verdict, text: describeJudged(judged, baseline, unit) };
    }),
    notes: [describeOthersLoad(result.othersLoad), note, ...ownNotes].filter((text) => text !== undefined),
  };
}

/** Baseline / contestant in every round; empty without a baseline. */
export function ratiosOf(result: CaseResult, contestant: ContestantResult): number[] {
  return ratiosTo(result, result.baseline, contestant, result.primaryMetric);
}

function ratiosTo(result: CaseResult, other: string, { name }: ContestantResult, metric: string): number[] {
  const ratios = paired(samplesOf(result, other, metric), samplesOf(result, name, metric), ratioOf);
  return ratios.filter((ratio) => !Number.isNaN(ratio));
}

function viewContestant(result: CaseResult, contestant: ContestantResult): CaseRow {
  const { name, role, cannot, metrics, problems } = contestant;
  if (cannot !== undefined) return { role, cells: [name], cannot };
  const ratio = result.baseline === '' ? [] : [formatSamples(ratiosOf(result, contestant))];
  const standing = role === 'ours' ? describeStanding(result, contestant) : '';
  const failed = problems.length === 0 ? '' : 'SELF-CHECK FAILED';
  const verdict = [failed, standing].filter((line) => line !== '').join('\n');
  return { role, cells: [name, ...ratio, ...metrics.map(({ samples }) => formatSamples(samples)), verdict] };
}

/** The target in words and what was measured. */
function describeJudged({ target, actual }: JudgedTarget, baseline: string, unit: string): string {
  const measured = actual === null ? 'not measured' : formatNumber(actual);
  return `${describeTarget(target, baseline, unit)} — ${measured}`;
}

/** Ours compared with another contestant in one metric. Even: the rounds do not agree. */
interface Versus {
  readonly other: string;
  readonly metric: string;
  /** other / ours: above 1, ours is ahead. */
  readonly ratio: string;
  readonly standing: 'ahead' | 'even' | 'behind';
}

function comparisonsOf(result: CaseResult, ours: ContestantResult): Versus[] {
  const others = result.contestants.filter(({ role }) => role !== 'ours');
  const metrics = ours.metrics.filter(({ isAside = false }) => !isAside);
  return others.flatMap(({ name: other }) =>
    metrics.flatMap(({ name: metric }) => {
      const ratios = ratiosTo(result, other, ours, metric);
      if (ratios.length === 0) return [];
      const { median, min, max } = summarize(ratios);
      const standing = min > 1 ? 'ahead' : max < 1 ? 'behind' : 'even';
      return [{ other, metric, ratio: formatNumber(median), standing } as const];
    }),
  );
}

/** `ahead of all`, or a line for each contestant that ours is not ahead of. */
export function describeStanding(result: CaseResult, ours: ContestantResult): string {
  const comparisons = comparisonsOf(result, ours);
  if (comparisons.length === 0) return '';
  if (comparisons.every(({ standing }) => standing === 'ahead')) return 'ahead of all';
  const lines = (wanted: Versus['standing'], relation: string): string[] => {
    const textsOf = new Map<string, string[]>();
    for (const { other, metric, ratio, standing } of comparisons) {
      if (standing !== wanted) continue;
      const text = metric === result.primaryMetric ? ratio : `${metric} ${ratio}`;
      textsOf.set(other, [...(textsOf.get(other) ?? []), text]);
    }
    return [...textsOf].map(([other, texts]) => `${relation} ${other}: ${texts.join(',\n  ')}`);
  };
  return [...lines('behind', 'WE LOSE to'), ...lines('even', 'even with')].join('\n');
}

/** Cases in which one of ours is behind, one line for each other contestant and metric. */
export function describeLosses(result: BenchResult): string[] {
  return casesOf(result).flatMap((each) =>
    each.contestants
      .filter(({ role }) => role === 'ours')
      .flatMap((ours) =>
        comparisonsOf(each, ours)
          .filter(({ standing }) => standing === 'behind')
          .map(
            ({ other, metric, ratio }) =>
              `${each.name}: ${ours.name} loses to ${other} in ${metric}: ${ratio}`,
          ),
      ),
  );
}

export function describeMissedTargets(result: BenchResult): string[] {
  return casesOf(result).flatMap(({ name, baseline, targets }) =>
    targets
      .filter(({ verdict }) => verdict === 'missed')
      .map((judged) => `${name}: ${describeJudged(judged, baseline, '')}`),
  );
}

export function summarizeTargets(result: BenchResult): string {
  const cases = casesOf(result);
  const all = cases.flatMap(({ targets }) => targets);
  if (all.length === 0) return 'No targets.';
  if (result.quick) return `${all.length} targets, not judged in a smoke run.`;
  const met = all.filter(({ verdict }) => verdict === 'met').length;
  const busy = cases.filter(({ othersLoad }) => describeOthersLoad(othersLoad) !== undefined).length;
  const doubt =
    busy === 0 ? '' : ` Other programs kept the machine busy in ${busy} cases: measure these again.`;
  return `${met} of ${all.length} targets met.${doubt}`;
}
