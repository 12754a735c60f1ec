/**
 * Runs one case: every contestant in turn, round after round, in one process, so that warm-up, throttling and a
 * noisy neighbour hit all of them alike.
 */
import type { CollectorWatch } from './collector-watch.ts';
import type { Measurement } from './measurement.ts';
import type { BenchCase, Contestant, MetricDefinition } from './part.ts';
import type { CaseResult, ContestantResult } from './result.ts';
import { OthersLoad } from './others-load.ts';
import { Residents } from './residents.ts';
import { rotate } from './rotate.ts';
import { bulkMetrics, runBulk } from './run-bulk.ts';
import { MICRO_METRICS, runMicro, type MicroEffort } from './run-micro.ts';
import { runScenario, scenarioMetrics } from './run-scenario.ts';
import { judge } from './target.ts';

const DEFAULT_ROUNDS = 5;
/** Two, so that the order is seen both ways. */
const QUICK_ROUNDS = 2;
const FULL_EFFORT: MicroEffort = { samples: 5, minTimeS: 0.03 };
const QUICK_EFFORT: MicroEffort = { samples: 3, minTimeS: 0.005 };
/** The part of the size that a bulk case is warmed up with, unrecorded: its timed section runs only once a round. */
const WARM_UP_SHARE = 0.1;

export interface RunOptions {
  readonly isQuick: boolean;
  readonly collector: CollectorWatch;
  /** Called before each contestant of each round. */
  readonly onStep: (label: string) => void;
}

/** One contestant of the case, ready to be measured once. */
interface Runner {
  readonly name: string;
  readonly measurements: Measurement[];
  measure(size: number): Promise<Measurement>;
}

export function roundsOf(definition: BenchCase, isQuick: boolean): number {
  if (isQuick) return definition.kind === 'scenario' ? 1 : QUICK_ROUNDS;
  return definition.rounds ?? DEFAULT_ROUNDS;
}

/** How many times `onStep` will be called. */
export function stepsOf(definition: BenchCase, isQuick: boolean): number {
  const able = definition.contestants.filter(({ open }) => typeof open === 'function').length;
  return able * roundsOf(definition, isQuick);
}

export async function runCase(definition: BenchCase, options: RunOptions): Promise<CaseResult> {
  const othersLoad = new OthersLoad();
  const runners = runnersOf(definition, options);
  const size = options.isQuick ? definition.size.quick : definition.size.full;
  if (definition.kind === 'bulk') await warmUp(runners, Math.ceil(size * WARM_UP_SHARE));
  for (let round = 0; round < roundsOf(definition, options.isQuick); round++) {
    for (const runner of rotate(runners, round)) {
      options.onStep(`${definition.name}: ${runner.name}`);
      runner.measurements.push(await measureSafely(runner, size));
    }
  }
  return assemble(definition, runners, size, options.isQuick, othersLoad.share());
}

async function warmUp(runners: readonly Runner[], size: number): Promise<void> {
  for (const runner of runners) await measureSafely(runner, size);
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
  const effort = isQuick ? QUICK_EFFORT : FULL_EFFORT;
  const residents = new Residents();
  switch (definition.kind) {
    case 'micro':
      return ready(definition.contestants, (open, size) =>
        runMicro(open, size, effort, collector, residents),
      );
    case 'bulk': {
      const measuresBytes = definition.measuresBytes ?? false;
      return ready(definition.contestants, (open, size) =>
        runBulk(open, size, measuresBytes, collector, residents),
      );
    }
    case 'scenario':
      return ready(definition.contestants, (open, size) => runScenario(open, size, collector));
  }
}

function ready<Open>(
  contestants: readonly Contestant<Open>[],
  measure: (open: Open, size: number) => Promise<Measurement>,
): Runner[] {
  return contestants.flatMap(({ name, open }) =>
    isAble(open) ? [{ name, measurements: [], measure: (size) => measure(open, size) }] : [],
  );
}

function isAble<Open>(open: Open | { readonly cannot: string }): open is Open {
  return typeof open === 'function';
}

function metricsOf(definition: BenchCase): readonly MetricDefinition[] {
  switch (definition.kind) {
    case 'micro':
      return MICRO_METRICS;
    case 'bulk':
      return bulkMetrics(definition);
    case 'scenario':
      return scenarioMetrics(definition);
  }
}

function assemble(
  definition: BenchCase,
  runners: readonly Runner[],
  size: number,
  isQuick: boolean,
  othersLoad: number,
): CaseResult {
  const metrics = metricsOf(definition);
  const result: CaseResult = {
    name: definition.name,
    ...(definition.note === undefined ? {} : { note: definition.note }),
    size,
    sizeOf: definition.size.of,
    baseline: definition.contestants.find(({ role }) => role === 'baseline')?.name ?? '',
    primaryMetric: metrics[0]?.name ?? '',
    contestants: definition.contestants.map((contestant) =>
      assembleContestant(
        contestant,
        metrics,
        runners.find(({ name }) => name === contestant.name),
      ),
    ),
    targets: [],
    othersLoad,
  };
  return { ...result, targets: (definition.targets ?? []).map((target) => judge(target, result, isQuick)) };
}

function assembleContestant(
  { name, role, note, open }: Contestant<unknown>,
  metrics: readonly MetricDefinition[],
  runner: Runner | undefined,
): ContestantResult {
  const measurements = runner?.measurements ?? [];
  const cannot =
    typeof open === 'object' && open !== null && 'cannot' in open ? String(open.cannot) : undefined;
  return {
    name,
    role,
    ...(note === undefined ? {} : { note }),
    ...(cannot === undefined ? {} : { cannot }),
    metrics: metrics.map((metric) => ({
      ...metric,
      samples: measurements.map(({ values }) => values[metric.name]).filter((value) => value !== undefined),
    })),
    problems: measurements.map(({ problem }) => problem).filter((problem) => problem !== undefined),
  };
}
