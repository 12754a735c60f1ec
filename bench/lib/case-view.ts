/** A case as rows of text: what the terminal's table and the report's table both show. */
import { formatNumber, formatSamples } from './format.ts';
import { describeOthersLoad } from './others-load.ts';
import { samplesOf, type CaseResult, type ContestantResult, type MetricResult } from './result.ts';
import { pairedRatios } from './statistics.ts';
import { describeTarget, type JudgedTarget } from './target.ts';
import { describeStanding } from './versus.ts';

export interface CaseView {
  readonly title: string;
  readonly head: readonly string[];
  readonly rows: readonly CaseRow[];
  readonly targets: readonly TargetView[];
  /** How busy the machine was, if it was; the case's note; then one for each contestant that has something to say. */
  readonly notes: readonly string[];
}

export interface CaseRow {
  readonly role: ContestantResult['role'];
  readonly cells: readonly string[];
  /** In place of all cells but the first: why it does not take part. */
  readonly cannot?: string;
}

export interface TargetView {
  readonly verdict: JudgedTarget['verdict'];
  readonly text: string;
}

export function viewCase(result: CaseResult): CaseView {
  const metrics = result.contestants[0]?.metrics ?? [];
  const rounds = Math.max(0, ...result.contestants.flatMap((c) => c.metrics.map((m) => m.samples.length)));
  return {
    title: `${result.name} — ${[...sizeOf(result), `${rounds} ${rounds === 1 ? 'round' : 'rounds'}`].join(', ')}`,
    head: ['', ...ratioHead(result), ...metrics.map(metricHead), 'ours against the others'],
    rows: result.contestants.map((contestant) => viewContestant(result, contestant)),
    targets: result.targets.map((judged) => viewTarget(result, judged)),
    notes: [
      ...loadOf(result),
      ...(result.note === undefined ? [] : [result.note]),
      ...result.contestants.flatMap(({ name, note }) => (note === undefined ? [] : [`${name}: ${note}`])),
    ],
  };
}

/** The ratio of every round, and nothing where there is no baseline. */
export function ratiosOf(result: CaseResult, contestant: ContestantResult): number[] {
  const { baseline, primaryMetric } = result;
  const base = result.contestants.find(({ name }) => name === baseline);
  return pairedRatios(samplesOf(base, primaryMetric), samplesOf(contestant, primaryMetric)).filter(
    (ratio) => !Number.isNaN(ratio),
  );
}

function sizeOf({ size, sizeOf: of }: CaseResult): string[] {
  return of === '' ? [] : [`${formatNumber(size)} ${of}`];
}

function loadOf({ othersLoad }: CaseResult): string[] {
  const remark = describeOthersLoad(othersLoad);
  return remark === undefined ? [] : [remark];
}

function ratioHead({ baseline }: CaseResult): string[] {
  return baseline === '' ? [] : [`${baseline}\n/ this`];
}

function metricHead({ name, unit }: MetricResult): string {
  return [...name.split(' '), unit].join('\n').trimEnd();
}

function viewContestant(result: CaseResult, contestant: ContestantResult): CaseRow {
  const { name, role, cannot, metrics, problems } = contestant;
  if (cannot !== undefined) return { role, cells: [name], cannot };
  const ratio = result.baseline === '' ? [] : [formatSamples(ratiosOf(result, contestant))];
  const standing = role === 'ours' ? describeStanding(result, contestant) : '';
  const failed = problems.length === 0 ? [] : ['SELF-CHECK FAILED'];
  const verdict = [...failed, standing].filter((line) => line !== '').join('\n');
  return { role, cells: [name, ...ratio, ...metrics.map(({ samples }) => formatSamples(samples)), verdict] };
}

function viewTarget(result: CaseResult, { target, actual, verdict }: JudgedTarget): TargetView {
  const unit = result.contestants[0]?.metrics.find(({ name }) => name === target.metric)?.unit ?? '';
  const measured = actual === null ? 'not measured' : formatNumber(actual);
  return { verdict, text: `${describeTarget(target, result.baseline, unit)} — ${measured}` };
}
