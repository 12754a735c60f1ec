/**
 * What a run produces and `--json` writes: plain data with every sample of every round, and nothing that identifies
 * the machine's owner or a path. Targets are judged on medians over the rounds.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import type { Machine } from './machine.ts';
import type { MetricDefinition, Role, Target } from './part.ts';
import { UsageError } from './program.ts';
import { median, paired, ratioOf } from './statistics.ts';

/** Raised when older files can no longer be read. */
const RESULT_SCHEMA = 1;

export interface BenchResult {
  readonly schema: typeof RESULT_SCHEMA;
  readonly date: string;
  /** Whether it is a smoke run: smaller, shorter, its targets not judged. */
  readonly quick: boolean;
  readonly machine: Machine;
  readonly parts: readonly PartResult[];
}

export interface PartResult {
  readonly name: string;
  readonly title: string;
  readonly remarks: readonly string[];
  readonly cases: readonly CaseResult[];
}

export interface CaseResult {
  readonly name: string;
  readonly note?: string | undefined;
  readonly size: number;
  readonly sizeOf: string;
  /** The contestant that the others are compared with; empty if the case has none. */
  readonly baseline: string;
  /** The metric that ratios are computed from. */
  readonly primaryMetric: string;
  readonly contestants: readonly ContestantResult[];
  readonly targets: readonly JudgedTarget[];
  /** Share of all processors that other programs used meanwhile. */
  readonly othersLoad: number;
}

export interface ContestantResult {
  readonly name: string;
  readonly role: Role;
  readonly note?: string | undefined;
  /** Why the contestant does not take part. */
  readonly cannot?: string | undefined;
  readonly metrics: readonly MetricResult[];
  /** Problems that its self-check found, round by round. If there is any, the run has failed. */
  readonly problems: readonly string[];
}

export interface MetricResult extends MetricDefinition {
  /** One value a round, in the order of the rounds. */
  readonly samples: readonly number[];
}

export interface JudgedTarget {
  readonly target: Target;
  /** `null` if nothing could be measured. */
  readonly actual: number | null;
  readonly verdict: 'met' | 'missed' | 'not judged';
}

/** A smoke run is too short to judge. */
export function judge(target: Target, result: CaseResult, isQuick: boolean): JudgedTarget {
  const actual = actualOf(target, result);
  if (isQuick) return { target, actual, verdict: 'not judged' };
  const isMet =
    actual !== null && (target.kind === 'ratio' ? actual >= target.bound : actual <= target.bound);
  return { target, actual, verdict: isMet ? 'met' : 'missed' };
}

function actualOf(target: Target, result: CaseResult): number | null {
  const own = samplesOf(result, target.contestant, target.metric);
  const base = samplesOf(result, target.against ?? result.baseline, target.metric);
  const samples = {
    ratio: () => paired(base, own, ratioOf),
    limit: () => own,
    excess: () => paired(own, base, (minuend, subtrahend) => minuend - subtrahend),
  };
  const value = median(samples[target.kind]());
  return Number.isFinite(value) ? value : null;
}

/** The target in words: `time: host / ours at least 2.5`. */
export function describeTarget(target: Target, baseline: string, unit: string): string {
  const { kind, contestant, metric, bound, against = baseline } = target;
  if (kind === 'ratio') return `${metric}: ${against} / ${contestant} at least ${bound}`;
  const limit = `${metric}: ${contestant} at most ${[bound, unit].join(' ').trimEnd()}`;
  return kind === 'limit' ? limit : `${limit} above ${baseline}`;
}

/** Empty if the contestant or the metric is missing. */
export function samplesOf(result: CaseResult, contestant: string, metric: string): readonly number[] {
  const found = result.contestants.find(({ name }) => name === contestant);
  return found?.metrics.find(({ name }) => name === metric)?.samples ?? [];
}

export function casesOf(result: BenchResult): CaseResult[] {
  return result.parts.flatMap(({ cases }) => cases);
}

/** Failed self-checks, one line each. */
export function problemsOf({ parts }: BenchResult): string[] {
  return parts.flatMap((part) =>
    part.cases.flatMap(({ name, contestants }) =>
      contestants.flatMap((contestant) =>
        contestant.problems.map((problem) => `${part.name} / ${name} / ${contestant.name}: ${problem}`),
      ),
    ),
  );
}

/** A result of now, with the schema that `readResult` accepts. */
export function newResult(quick: boolean, machine: Machine, parts: readonly PartResult[]): BenchResult {
  return { schema: RESULT_SCHEMA, date: new Date().toISOString(), quick, machine, parts };
}

export function writeResult(file: string, result: BenchResult): void {
  writeFileSync(file, `${JSON.stringify(result, undefined, 2)}\n`);
}

/** @throws UsageError - the file cannot be read, or `--json` did not write it. */
export function readResult(file: string): BenchResult {
  let value: unknown;
  try {
    value = JSON.parse(readFileSync(file, 'utf8'));
  } catch (error) {
    throw new UsageError(`--compare: cannot read '${file}': ${(error as Error).message}`);
  }
  const { schema, parts } = (value ?? {}) as Partial<BenchResult>;
  if (schema === RESULT_SCHEMA && Array.isArray(parts)) return value as BenchResult;
  throw new UsageError(`--compare: '${file}' is not a result of --json (schema ${RESULT_SCHEMA})`);
}
