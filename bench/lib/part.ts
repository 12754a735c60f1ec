/**
 * What a `bench/NAME.bench.ts` file declares: `export const part: BenchPart`, a table of cases. The harness runs the
 * contestants of a case in turn, round after round, in one process.
 *
 *      part ──► case, unique name ──► contestant: open ──► run ──► check ──► close
 *                   size, metrics         baseline │ rival │ ours
 *                   targets, note
 *
 * A case is made by `micro`, `bulk` or `scenario` of `kinds.ts`, which are the ways to measure. A table imports neither the
 * library nor its rivals: contestants are loaded after the build, so that a wrong `--filter` is refused before it.
 */
import type { CollectorWatch } from './collector.ts';

/** One part of the library: what `npm run bench -- NAME` runs, where NAME is the name of the file. */
export interface BenchPart {
  readonly title: string;
  /** Facts about the contestants that a reader needs before the table, one paragraph an entry. */
  readonly remarks: readonly string[];
  readonly cases: readonly BenchCase[];
}

/** The contestant that all others are divided by, the alternatives to this library, and this library. */
export type Role = 'baseline' | 'rival' | 'ours';

/** Number of items of a case in a full run and in a smoke run. */
export interface Size {
  readonly full: number;
  readonly quick: number;
  /** Unit of the size: 'timers', 'ms'. Empty if the case has no size. */
  readonly of: string;
}

/** Size of a case that repeats one operation. */
export const NO_SIZE: Size = { full: 1, quick: 1, of: '' };

/** A row of the table, of any kind. */
export interface CaseOf<Open> {
  /** Unique in its part: `--filter` searches it, `--compare` matches it. */
  readonly name: string;
  readonly note?: string | undefined;
  readonly size: Size;
  /** Rounds of a full run. @default 5 */
  readonly rounds?: number | undefined;
  /** A target against a rival that cannot take part is left out. */
  readonly targets?: readonly Target[] | undefined;
  readonly contestants: Load<Open>;
}

export type Load<Open> = () => readonly Contestant<Open>[] | Promise<readonly Contestant<Open>[]>;

export interface BenchCase extends CaseOf<Measure> {
  /** Ratios are computed from the first one. */
  readonly metrics: readonly MetricDefinition[];
  /** Share of the size that each contestant is warmed up with, unrecorded, but not in a smoke run. @default 0 */
  readonly warmUpShare?: number;
}

/** Measures one round of a contestant. */
export type Measure = (size: number, round: Round) => Promise<Measurement>;

/** What the harness has for every round of a case. */
export interface Round {
  readonly isQuick: boolean;
  readonly collector: CollectorWatch;
  /** By `open` of a contestant, the first thing that it has opened. See `keepFirst`. */
  readonly residents: Map<unknown, unknown>;
}

/** Result of one contestant in one round, for every kind of case. */
export interface Measurement {
  /** By metric name. */
  readonly values: Readonly<Record<string, number>>;
  /** Proof that the work was not done. */
  readonly problem?: string | undefined;
}

export interface MetricDefinition {
  readonly name: string;
  /** 'ms', 'bytes', 'ns/op', or '' for a count. Less is always better. */
  readonly unit: string;
  /** Shown, but not compared: part of another metric, or too noisy. */
  readonly isAside?: boolean;
}

export interface Contestant<Open> {
  readonly name: string;
  readonly role: Role;
  readonly note?: string | undefined;
  /** Untimed preparation of a round, or the reason why the contestant cannot take part. */
  readonly open: Open | Cannot;
}

export interface Cannot {
  readonly cannot: string;
}

/** What micro and bulk cases time, the garbage collector's share of it, and the bytes per item a run leaves behind. */
export const TIME = 'time';
export const COLLECTOR = 'collector';
export const BYTES = 'bytes';

export const NS_PER_MS = 1e6;
export const US_PER_MS = 1_000;
export const MS_PER_S = 1_000;
export const HOUR_MS = 3_600_000;
export const MIB = 2 ** 20;

export function metric(name: string, unit = ''): MetricDefinition {
  return { name, unit };
}

/** A metric that is shown, but not compared. */
export function aside(name: string, unit = ''): MetricDefinition {
  return { name, unit, isAside: true };
}

type Declare = <Open>(name: string, open: Open | Cannot, note?: string) => Contestant<Open>;

function inRole(role: Role): Declare {
  return (name, open, note) => ({ name, role, note, open });
}

export const baseline = inRole('baseline');
export const rival = inRole('rival');
export const ours = inRole('ours');

/** A rival that cannot take part. */
export function unable(name: string, cannot: string): Contestant<never> {
  return { name, role: 'rival', open: { cannot } };
}

/** The same contestants in a case: `openWith` makes a case's `open` of what each contestant has. */
export function contest<Kind, Open>(
  kinds: readonly Contestant<Kind>[],
  openWith: (kind: Kind, name: string) => Open | Cannot,
): Contestant<Open>[] {
  return kinds.map(({ open, ...contestant }) => ({
    ...contestant,
    open: isCannot(open) ? open : openWith(open, contestant.name),
  }));
}

export function isCannot(open: unknown): open is Cannot {
  return typeof open === 'object' && open !== null && 'cannot' in open;
}

/** A self-check. @returns the problem, or undefined. */
export function expectCount(actual: number, expected: number, what: string): string | undefined {
  return actual === expected ? undefined : `${actual} ${what}, not ${expected}`;
}

/** A bound on one of our contestants: relative to the baseline or a named rival, absolute, or above the baseline. */
export interface Target {
  readonly kind: 'ratio' | 'limit' | 'excess';
  readonly contestant: string;
  readonly metric: string;
  /** The least ratio, or the largest limit or excess. */
  readonly bound: number;
  /** The rival of a ratio. @default the baseline */
  readonly against?: string | undefined;
}

/** The baseline divided by the contestant, or the rival `against` divided by it, must be at least `bound`. */
export function atLeast(contestant: string, metricName: string, bound: number, against?: string): Target {
  return { kind: 'ratio', contestant, metric: metricName, bound, against };
}

export function atMost(contestant: string, metricName: string, bound: number): Target {
  return { kind: 'limit', contestant, metric: metricName, bound };
}

/** The contestant minus the baseline must be at most `bound`. */
export function atMostAbove(contestant: string, metricName: string, bound: number): Target {
  return { kind: 'excess', contestant, metric: metricName, bound };
}

/**
 * Loads a copy of a module for one contestant. The same `name` returns the same copy.
 *
 * WHY. V8 collects type feedback per function of a loaded module. A loop that five contestants share sees five classes,
 * its calls become megamorphic and are not inlined: about 50 ns an operation where a loop of its own needs 15.
 */
export function instanceFor(module: URL, name: string): Promise<unknown> {
  const url = new URL(module);
  url.searchParams.set('for', name);
  return import(/* @vite-ignore */ url.href);
}
