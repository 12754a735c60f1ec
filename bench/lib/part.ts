import type { Target } from './target.ts';

/*
 * What a `bench/*.bench.ts` file declares: `export const part: BenchPart`. It holds no loop and no clock; the
 * harness runs the contestants of a case in turn, round after round, in one process.
 */

/** One part of the library: what `npm run bench -- NAME` runs, NAME being the file's. */
export interface BenchPart {
  readonly title: string;
  /** What a reader must know about the contestants before believing the table, a paragraph an entry. */
  readonly remarks?: readonly string[];
  readonly cases: readonly BenchCase[];
}

export type BenchCase = MicroCase | BulkCase | ScenarioCase;

/** The one everything is divided by, what else there is to use, and ourselves. */
export type Role = 'baseline' | 'rival' | 'ours';

/** How large a case is, and what the same case shrinks to in a smoke run. */
export interface Size {
  readonly full: number;
  readonly quick: number;
  /** What is counted: 'timers', 'ms'. Empty where there is nothing to count. */
  readonly of: string;
}

interface CaseBase<Open> {
  /** Unique in its part: `--filter` searches it, `--compare` matches it. */
  readonly name: string;
  readonly note?: string;
  readonly size: Size;
  /** Rounds of a full run, one at least. Default 5. */
  readonly rounds?: number;
  readonly contestants: readonly Contestant<Open>[];
  readonly targets?: readonly Target[];
}

export interface Contestant<Open> {
  readonly name: string;
  readonly role: Role;
  readonly note?: string;
  /** Makes it ready, untimed. A contestant that cannot do the case says why instead. */
  readonly open: Open | { readonly cannot: string };
}

/** What every contestant owes after the timed section. */
export interface Checked {
  /** The proof that the work was done: what is wrong, or undefined. Runs before `close`. */
  check(): string | undefined;
  /** Gives everything back: no timer may outlive it. May be called twice. */
  close(): void;
}

/** Nanoseconds of one operation, repeated by benchmark.js for as long as it needs to be sure. */
export interface MicroCase extends CaseBase<(size: number) => MicroRun> {
  readonly kind: 'micro';
}

export interface MicroRun extends Checked {
  /**
   * Does the operation `count` times, in a loop of the contestant's own. A loop shared by all would call through
   * a megamorphic site, and the difference between the contestants would drown in that.
   */
  run(count: number): void;
}

/** One long stretch of work, timed once a round: filling, draining. */
export interface BulkCase extends CaseBase<(size: number) => BulkRun | Promise<BulkRun>> {
  readonly kind: 'bulk';
  /** Measure what the run left on the heap, per item. */
  readonly measuresBytes?: boolean;
  /** Report the longest pause of the collector, for cases that look for stalls. */
  readonly measuresPauses?: boolean;
  /** Names and units of what `details` returns. */
  readonly details?: readonly MetricDefinition[];
}

export interface BulkRun extends Checked {
  /** The timed section. @returns how many items it did: what time and bytes are divided by. */
  run(): number | Promise<number>;
  /** As above; a promise if it takes its time. */
  close(): unknown;
  details?(): Readonly<Record<string, number>>;
}

/** Anything else, often in real time: it does its own measuring and reports the metrics it declared. */
export interface ScenarioCase extends CaseBase<(size: number) => Promise<ScenarioOutcome>> {
  readonly kind: 'scenario';
  /** The first one is what ratios are made of. */
  readonly metrics: readonly MetricDefinition[];
}

export interface MetricDefinition {
  readonly name: string;
  /** 'ms', 'bytes', 'ns/op', or '' for a count. Less is better, always. */
  readonly unit: string;
  /** Shown, and not compared: part of another metric, or too noisy to say who won. */
  readonly isAside?: boolean;
}

export interface ScenarioOutcome {
  readonly values: Readonly<Record<string, number>>;
  /** What shows that the work was not done; undefined if it was. */
  readonly problem: string | undefined;
}
