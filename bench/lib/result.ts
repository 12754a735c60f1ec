/**
 * What a run produces, and what `--json` writes: plain data, every sample of every round, nothing that names the
 * machine or a path on it.
 */
import type { Machine } from './machine.ts';
import type { Role } from './part.ts';
import type { JudgedTarget } from './target.ts';

/** Raised when an older file can no longer be read as a newer one. */
export const RESULT_SCHEMA = 1;

export interface BenchResult {
  readonly schema: typeof RESULT_SCHEMA;
  readonly date: string;
  /** A smoke run: smaller, shorter, its targets not judged. */
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
  readonly note?: string;
  readonly size: number;
  readonly sizeOf: string;
  /** The contestant the others are compared with; empty if the case has none. */
  readonly baseline: string;
  /** What ratios are made of. */
  readonly primaryMetric: string;
  readonly contestants: readonly ContestantResult[];
  readonly targets: readonly JudgedTarget[];
  /** The share of all processors that other programs used meanwhile. */
  readonly othersLoad: number;
}

export interface ContestantResult {
  readonly name: string;
  readonly role: Role;
  readonly note?: string;
  /** Why it does not take part. */
  readonly cannot?: string;
  readonly metrics: readonly MetricResult[];
  /** What its self-check found, round by round. Not empty: the run failed. */
  readonly problems: readonly string[];
}

export interface MetricResult {
  readonly name: string;
  readonly unit: string;
  /** Shown, and not compared. */
  readonly isAside?: boolean;
  /** One value a round, in the order of the rounds. */
  readonly samples: readonly number[];
}

export type Verdict = 'met' | 'missed' | 'not judged';

export function findContestant(result: CaseResult, name: string): ContestantResult | undefined {
  return result.contestants.find((contestant) => contestant.name === name);
}

/** Empty where the contestant or the metric is missing. */
export function samplesOf(contestant: ContestantResult | undefined, metric: string): readonly number[] {
  return contestant?.metrics.find(({ name }) => name === metric)?.samples ?? [];
}

/** Every self-check that failed, as a line each. */
export function problemsOf(result: BenchResult): string[] {
  return result.parts.flatMap((part) =>
    part.cases.flatMap(({ name, contestants }) =>
      contestants.flatMap((contestant) =>
        contestant.problems.map((problem) => `${part.name} / ${name} / ${contestant.name}: ${problem}`),
      ),
    ),
  );
}
