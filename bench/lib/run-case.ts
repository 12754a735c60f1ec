/**
 * Runs one case: every contestant in turn, round after round, in one process, so that warm-up, throttling and the load
 * of other programs affect all of them alike.
 */
import { performance } from 'node:perf_hooks';
import Benchmark from 'benchmark';
import { CollectorWindow, forceCollection, type CollectorWatch } from './collector.ts';
import { OthersLoad } from './machine.ts';
import { liveBytes } from './memory.ts';
import {
  aside,
  BYTES,
  COLLECTOR,
  isCannot,
  metric,
  NS_PER_MS,
  TIME,
  type BenchCase,
  type BulkCase,
  type BulkRun,
  type Contestant,
  type Measurement,
  type MetricDefinition,
  type MicroRun,
  type OpenScenario,
} from './part.ts';
import { judge, type CaseResult, type ContestantResult } from './result.ts';
import { median } from './statistics.ts';

const DEFAULT_ROUNDS = 5;
/** A smoke run shows that every contestant works; its numbers are not compared. */
const QUICK_ROUNDS = 1;
/** Share of the size that a bulk case is warmed up with, unrecorded: its timed section runs only once a round. */
const WARM_UP_SHARE = 0.1;
const LONGEST_PAUSE = 'longest gc pause';

/** What the number of rounds depends on, beside the case. */
interface Rounds {
  readonly isQuick: boolean;
  /** Rounds of a smoke run. */
  readonly quickRounds?: number;
}

export interface RunOptions extends Rounds {
  readonly collector: CollectorWatch;
  /** Called before each contestant of each round. */
  readonly onStep: (label: string) => void;
}

/** A contestant of the case that can be measured. */
interface Runner {
  readonly name: string;
  readonly measurements: Measurement[];
  measure(size: number): Promise<Measurement>;
}

/** Number of calls of `onStep`. */
export function stepsOf(definition: BenchCase, options: Rounds): number {
  const able = definition.contestants.filter(({ open }) => !isCannot(open)).length;
  return able * roundsOf(definition, options);
}

function roundsOf(
  { rounds = DEFAULT_ROUNDS }: BenchCase,
  { isQuick, quickRounds = QUICK_ROUNDS }: Rounds,
): number {
  return isQuick ? quickRounds : rounds;
}

export async function runCase(definition: BenchCase, options: RunOptions): Promise<CaseResult> {
  const othersLoad = new OthersLoad();
  const runners = runnersOf(definition, options);
  const size = options.isQuick ? definition.size.quick : definition.size.full;
  if (definition.kind === 'bulk') {
    for (const runner of runners) await measureSafely(runner, Math.ceil(size * WARM_UP_SHARE));
  }
  for (let round = 0; round < roundsOf(definition, options); round++) {
    for (const runner of rotate(runners, round)) {
      options.onStep(`${definition.name}: ${runner.name}`);
      runner.measurements.push(await measureSafely(runner, size));
    }
  }
  return assemble(definition, runners, size, options.isQuick, othersLoad.share());
}

/**
 * Returns the order of a round: forwards and backwards in turn, and every contestant starts once, so that none always
 * follows the one that leaves the largest heap behind.
 */
export function rotate<T>(items: readonly T[], round: number): T[] {
  const order = round % 2 === 0 ? items : items.toReversed();
  const first = items.length === 0 ? 0 : Math.floor(round / 2) % items.length;
  return [...order.slice(first), ...order.slice(0, first)];
}

/** A contestant that throws has failed its self-check; the others still run. */
async function measureSafely(runner: Runner, size: number): Promise<Measurement> {
  try {
    return await runner.measure(size);
  } catch (error) {
    return { values: {}, problem: error instanceof Error ? (error.stack ?? error.message) : String(error) };
  }
}

function runnersOf(definition: BenchCase, { isQuick, collector }: RunOptions): Runner[] {
  const residents = new Residents();
  switch (definition.kind) {
    case 'micro':
      return runnersFor(definition.contestants, (open, size) =>
        runMicro(open, size, isQuick, collector, residents),
      );
    case 'bulk':
      return runnersFor(definition.contestants, (open, size) =>
        runBulk(open, size, definition.measuresBytes === true, collector, residents),
      );
    case 'scenario':
      return runnersFor(definition.contestants, (open, size) => runScenario(open, size, collector));
  }
}

function runnersFor<Open>(
  contestants: readonly Contestant<Open>[],
  measure: (open: Open, size: number) => Promise<Measurement>,
): Runner[] {
  return contestants.flatMap(({ name, open }) =>
    isCannot(open) ? [] : [{ name, measurements: [], measure: (size: number) => measure(open, size) }],
  );
}

/**
 * Keeps the first run of each contestant of a case, closed, until the case is over.
 *
 * WHY. A collection that finds no object of a shape also discards the code that V8 has compiled for that shape. With a
 * collection before every round, contestants made of their own objects would start every round in the interpreter,
 * but not the host, whose shapes are always in use. In a program the timer lives as long as the process.
 */
class Residents {
  readonly #kept = new Map<unknown, unknown>();

  /** @param open - the same function for all runs of a contestant. */
  keepFirst(open: unknown, run: unknown): void {
    if (!this.#kept.has(open)) this.#kept.set(open, run);
  }
}

/*
 * How micro cases use benchmark.js, and why.
 *
 * - `setup` and `teardown` stay unset. With either, it decompiles `fn` and compiles its source text anew, out of the
 *   scope of everything the text refers to. Without, the compiled loop calls our closure.
 * - That call and the loop around it cost some nanoseconds, so one call does OPERATIONS_PER_CALL operations, in a
 *   loop of the contestant (see `MicroRun.run`). Their results are state that the self-check reads: no dead code.
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

async function runMicro(
  open: (size: number) => MicroRun,
  size: number,
  isQuick: boolean,
  collector: CollectorWatch,
  residents: Residents,
): Promise<Measurement> {
  forceCollection();
  const contestant = open(size);
  residents.keepFirst(open, contestant);
  const window = new CollectorWindow();
  const { nsPerOperation, operations, problem } = cycleAndClose(contestant, isQuick, window);
  const { totalMs } = await collector.read(window);
  const values = { [TIME]: nsPerOperation, [COLLECTOR]: (totalMs * NS_PER_MS) / operations };
  return { values, problem };
}

interface Cycles {
  readonly nsPerOperation: number;
  readonly operations: number;
  readonly problem: string | undefined;
}

/** Checks before it closes, and both before the event loop turns. */
function cycleAndClose(contestant: MicroRun, isQuick: boolean, window: CollectorWindow): Cycles {
  try {
    const cycles = cycle(contestant, isQuick);
    window.close();
    return { ...cycles, problem: cycles.problem ?? contestant.check() };
  } finally {
    contestant.close?.();
  }
}

function cycle(contestant: MicroRun, isQuick: boolean): Cycles {
  let operations = 0;
  const benchmark = new Benchmark({
    fn: () => {
      contestant.run(OPERATIONS_PER_CALL);
      operations += OPERATIONS_PER_CALL;
    },
    ...(isQuick ? QUICK_EFFORT : FULL_EFFORT),
    maxTime: NEXT_TO_NOTHING_S,
  });
  benchmark.run({ async: false });
  const error = benchmark.error as Error | undefined;
  const secondsPerCall = median(benchmark.stats.sample as number[]);
  const nsPerOperation = (secondsPerCall / OPERATIONS_PER_CALL) * 1e9;
  return { nsPerOperation, operations, problem: error?.message };
}

/** Every timed section starts after a collection. */
async function runBulk(
  open: (size: number) => BulkRun | Promise<BulkRun>,
  size: number,
  measuresBytes: boolean,
  collector: CollectorWatch,
  residents: Residents,
): Promise<Measurement> {
  const contestant = await open(size);
  residents.keepFirst(open, contestant);
  let before = 0;
  if (measuresBytes) before = await liveBytes();
  else forceCollection();
  const window = new CollectorWindow();
  try {
    const startMs = performance.now();
    const items = await contestant.run();
    const elapsedMs = performance.now() - startMs;
    window.close();
    const bytes = measuresBytes ? { [BYTES]: ((await liveBytes()) - before) / items } : {};
    const problem = contestant.check();
    const details = contestant.details?.() ?? {};
    await contestant.close?.();
    const { totalMs, longestMs } = await collector.read(window);
    const perItem = { [TIME]: (elapsedMs * NS_PER_MS) / items, [COLLECTOR]: (totalMs * NS_PER_MS) / items };
    return { values: { ...perItem, ...bytes, ...details, [LONGEST_PAUSE]: longestMs }, problem };
  } finally {
    await contestant.close?.();
  }
}

async function runScenario(
  open: OpenScenario,
  size: number,
  collector: CollectorWatch,
): Promise<Measurement> {
  forceCollection();
  const window = new CollectorWindow();
  const { values, problem } = await open(size);
  window.close();
  const { totalMs } = await collector.read(window);
  return { values: { ...values, [COLLECTOR]: totalMs }, problem };
}

function metricsOf(definition: BenchCase): readonly MetricDefinition[] {
  if (definition.kind === 'micro') return [metric(TIME, 'ns/op'), aside(COLLECTOR, 'ns/op')];
  if (definition.kind === 'scenario') return [...definition.metrics, aside(COLLECTOR, 'ms')];
  return bulkMetrics(definition);
}

function bulkMetrics({ measuresBytes, measuresPauses, details = [] }: BulkCase): MetricDefinition[] {
  return [
    metric(TIME, 'ns/item'),
    aside(COLLECTOR, 'ns/item'),
    ...(measuresBytes === true ? [metric(BYTES, 'bytes/item')] : []),
    ...details,
    ...(measuresPauses === true ? [aside(LONGEST_PAUSE, 'ms')] : []),
  ];
}

function assemble(
  definition: BenchCase,
  runners: readonly Runner[],
  size: number,
  isQuick: boolean,
  othersLoad: number,
): CaseResult {
  const metrics = metricsOf(definition);
  const contestants: readonly Contestant<unknown>[] = definition.contestants;
  const result: CaseResult = {
    name: definition.name,
    note: definition.note,
    size,
    sizeOf: definition.size.of,
    baseline: contestants.find(({ role }) => role === 'baseline')?.name ?? '',
    primaryMetric: metrics[0]?.name ?? '',
    contestants: contestants.map((contestant) => {
      const runner = runners.find(({ name }) => name === contestant.name);
      return assembleContestant(contestant, metrics, runner?.measurements ?? []);
    }),
    targets: [],
    othersLoad,
  };
  return { ...result, targets: (definition.targets ?? []).map((target) => judge(target, result, isQuick)) };
}

function assembleContestant(
  { name, role, note, open }: Contestant<unknown>,
  metrics: readonly MetricDefinition[],
  measurements: readonly Measurement[],
): ContestantResult {
  return {
    name,
    role,
    note,
    cannot: isCannot(open) ? open.cannot : undefined,
    metrics: metrics.map((each) => ({
      ...each,
      samples: measurements.map(({ values }) => values[each.name]).filter((value) => value !== undefined),
    })),
    problems: measurements.map(({ problem }) => problem).filter((problem) => problem !== undefined),
  };
}
