/** The three kinds of cases, each a function that makes a case: one operation, one stretch of work, and what measures itself. */
import Benchmark from 'benchmark';
import { CollectorWindow, forceCollection } from './collector.ts';
import { liveBytes } from './memory.ts';
import { aside, BYTES, COLLECTOR, contest, metric, NS_PER_MS, TIME } from './part.ts';
import type { BenchCase, CaseOf, Measurement, MetricDefinition, Round } from './part.ts';
import { median } from './statistics.ts';

/** What every contestant has after its timed section. */
export interface Checked {
  /** Verifies that the work was done, before `close`. @returns the problem, or undefined. */
  check(): string | undefined;
  /** Releases everything: no timer may outlive it. Awaited except in micro cases. */
  close?(): unknown;
}

/** Makes a run of the loop `run`, which is checked and closed as `subject` is. */
export function runOf<Run>(subject: Checked, run: Run): { readonly run: Run } & Checked {
  return { run, check: () => subject.check(), close: () => subject.close?.() };
}

/**
 * Keeps the first run of each contestant of a case, closed, until the case is over.
 *
 * WHY. A collection that finds no object of a shape also discards the code that V8 has compiled for that shape. With a
 * collection before every round, contestants made of their own objects would start every round in the interpreter,
 * but not the host, whose shapes are always in use. In a program the timer lives as long as the process.
 */
function keepFirst({ residents }: Round, open: unknown, run: unknown): void {
  if (!residents.has(open)) residents.set(open, run);
}

/** Starts a measurement from a clean heap. Numbers of a smoke run are not compared, and collections would be most of its work. */
function cleanHeap({ isQuick }: Round): void {
  if (!isQuick) forceCollection();
}

export interface MicroRun extends Checked {
  /** Runs the operation `count` times, in a loop of its own: see `instanceFor`. */
  run(count: number): void;
}

export type OpenMicro = (size: number) => MicroRun;

/** Nanoseconds of one operation, repeated by benchmark.js until the result is stable. */
export function micro({ contestants, ...row }: CaseOf<OpenMicro>): BenchCase {
  return {
    ...row,
    metrics: [metric(TIME, 'ns/op'), aside(COLLECTOR, 'ns/op')],
    contestants: async () =>
      contest(await contestants(), (open) => (size, round) => measureMicro(open, size, round)),
  };
}

/*
 * How micro cases use benchmark.js, and why.
 *
 * - `setup` and `teardown` stay unset. With either, it decompiles `fn` and compiles its source text anew, out of the
 *   scope of everything the text refers to. Without, the compiled loop calls our closure.
 * - That call and the loop around it cost some nanoseconds, so one call does OPERATIONS_PER_CALL operations, in a
 *   loop of the contestant. Their results are state that the self-check reads: no dead code.
 * - It runs synchronously: the event loop does not turn inside a round, so no host timer fires in it.
 * - It raises the number of calls until a cycle takes `minTime`, and then takes `minSamples` such cycles.
 *   A `maxTime` near zero keeps it from taking more, because the harness repeats rounds itself.
 *
 * The collection is forced before `open`, not after it. A collection that finds everything alive that `open` made
 * teaches V8 that allocations of those sites live long: it then allocates their literals (an array of arguments in the
 * host's `setTimeout`, a handle) in the old space, where they keep dead young objects alive. That made the host three
 * times as slow, which programs whose timers come and go do not see.
 */
const OPERATIONS_PER_CALL = 256;
const NEXT_TO_NOTHING_S = 1e-6;
/** The median of `minSamples` cycles, each of `minTime` seconds at least, is the result of a round. */
const FULL_EFFORT = { minSamples: 5, minTime: 0.03 };
const QUICK_EFFORT = { minSamples: 3, minTime: 0.005 };

/** Checks before it closes, and both before the event loop turns. */
async function measureMicro(open: OpenMicro, size: number, round: Round): Promise<Measurement> {
  cleanHeap(round);
  const contestant = open(size);
  keepFirst(round, open, contestant);
  const window = new CollectorWindow();
  let operations = 0;
  let problem: string | undefined;
  const benchmark = new Benchmark({
    fn: () => {
      contestant.run(OPERATIONS_PER_CALL);
      operations += OPERATIONS_PER_CALL;
    },
    ...(round.isQuick ? QUICK_EFFORT : FULL_EFFORT),
    maxTime: NEXT_TO_NOTHING_S,
  });
  try {
    benchmark.run({ async: false });
    window.close();
    problem = (benchmark.error as Error | undefined)?.message ?? contestant.check();
  } finally {
    contestant.close?.();
  }
  const { totalMs } = await round.collector.read(window);
  const secondsPerCall = median(benchmark.stats.sample as number[]);
  return {
    values: {
      [TIME]: (secondsPerCall / OPERATIONS_PER_CALL) * 1e9,
      [COLLECTOR]: (totalMs * NS_PER_MS) / operations,
    },
    problem,
  };
}

export interface BulkRun extends Checked {
  /** The timed section. */
  run(): unknown;
  /** Number of items done, by which time and bytes are divided. @default the size of the case */
  items?(): number;
  details?(): Readonly<Record<string, number>>;
}

export type OpenBulk = (size: number) => BulkRun | Promise<BulkRun>;

interface BulkCase extends CaseOf<OpenBulk> {
  /** Measures the bytes per item that the run leaves on the heap. */
  readonly measuresBytes?: boolean;
  /** Reports the longest pause of the garbage collector. */
  readonly measuresPauses?: boolean;
  /** Metrics that `details` returns. */
  readonly details?: readonly MetricDefinition[];
}

/** The timed section of a bulk case runs only once a round. */
const WARM_UP_SHARE = 0.1;
const LONGEST_PAUSE = 'longest gc pause';

/** One long stretch of work, timed once a round. */
export function bulk(row: BulkCase): BenchCase {
  const { contestants, measuresBytes = false, measuresPauses = false, details = [], ...described } = row;
  return {
    ...described,
    warmUpShare: WARM_UP_SHARE,
    metrics: [
      metric(TIME, 'ns/item'),
      aside(COLLECTOR, 'ns/item'),
      ...(measuresBytes ? [metric(BYTES, 'bytes/item')] : []),
      ...details,
      ...(measuresPauses ? [aside(LONGEST_PAUSE, 'ms')] : []),
    ],
    contestants: async () =>
      contest(await contestants(), (open) => (size, round) => measureBulk(open, size, measuresBytes, round)),
  };
}

/** Every timed section starts after a collection. */
async function measureBulk(
  open: OpenBulk,
  size: number,
  measuresBytes: boolean,
  round: Round,
): Promise<Measurement> {
  const contestant = await open(size);
  keepFirst(round, open, contestant);
  let before = 0;
  if (measuresBytes) before = await liveBytes();
  else cleanHeap(round);
  const window = new CollectorWindow();
  try {
    await contestant.run();
    window.close();
    const items = contestant.items?.() ?? size;
    const bytes = measuresBytes ? { [BYTES]: ((await liveBytes()) - before) / items } : {};
    const problem = contestant.check();
    const { totalMs, longestMs } = await round.collector.read(window);
    const perItem = {
      [TIME]: (window.elapsedMs * NS_PER_MS) / items,
      [COLLECTOR]: (totalMs * NS_PER_MS) / items,
    };
    const values = { ...perItem, ...bytes, ...contestant.details?.(), [LONGEST_PAUSE]: longestMs };
    return { values, problem };
  } finally {
    await contestant.close?.();
  }
}

export type Scenario = (size: number) => Promise<Measurement>;

interface ScenarioCase extends CaseOf<Scenario> {
  /** Ratios are computed from the first one. */
  readonly metrics: readonly MetricDefinition[];
}

/** Any other measurement, often in real time: the contestant measures itself and returns the declared metrics. */
export function scenario({ contestants, metrics, ...row }: ScenarioCase): BenchCase {
  return {
    ...row,
    metrics: [...metrics, aside(COLLECTOR, 'ms')],
    contestants: async () =>
      contest(await contestants(), (play) => async (size, round) => {
        cleanHeap(round);
        const window = new CollectorWindow();
        const { values, problem } = await play(size);
        window.close();
        const { totalMs } = await round.collector.read(window);
        return { values: { ...values, [COLLECTOR]: totalMs }, problem };
      }),
  };
}
