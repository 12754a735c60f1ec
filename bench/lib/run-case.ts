/**
 * Runs one case: every contestant in turn, round after round, in one process, so that warm-up, throttling and the load
 * of other programs affect all of them alike.
 */
import type { CollectorWatch } from './collector.ts';
import { watchOthers } from './machine.ts';
import { isCannot, type BenchCase, type Contestant, type Measure } from './part.ts';
import type { Measurement, Round } from './part.ts';
import { judge, type CaseResult, type ContestantResult } from './result.ts';

const DEFAULT_ROUNDS = 5;
/** A smoke run shows that every contestant works; its numbers are not compared. */
const QUICK_ROUNDS = 1;

export interface RunOptions {
  readonly isQuick: boolean;
  readonly collector: CollectorWatch;
  /** Called before each contestant of each round, which are `steps` in all. */
  readonly onStep: (label: string, done: number, steps: number) => void;
}

/** A contestant that can be measured. */
interface Runner {
  readonly name: string;
  readonly measure: Measure;
}

export async function runCase(definition: BenchCase, options: RunOptions): Promise<CaseResult> {
  const { isQuick, collector, onStep } = options;
  const { name, note, size: sizes, metrics, warmUpShare = 0, targets = [] } = definition;
  const rounds = isQuick ? QUICK_ROUNDS : (definition.rounds ?? DEFAULT_ROUNDS);
  const contestants = await definition.contestants();
  const runners = contestants.flatMap((each) =>
    isCannot(each.open) ? [] : [{ name: each.name, measure: each.open }],
  );
  const measurements = new Map<string, Measurement[]>(runners.map((runner) => [runner.name, []]));
  const othersLoad = watchOthers();
  const round: Round = { isQuick, collector, residents: new Map() };
  const size = isQuick ? sizes.quick : sizes.full;
  if (warmUpShare > 0 && !isQuick) {
    for (const runner of runners) await measureSafely(runner, Math.ceil(size * warmUpShare), round);
  }
  let done = 0;
  for (let index = 0; index < rounds; index++) {
    for (const runner of rotate(runners, index)) {
      onStep(`${name}: ${runner.name}`, done++, rounds * runners.length);
      measurements.get(runner.name)?.push(await measureSafely(runner, size, round));
    }
  }
  const result = {
    ...{ name, note, size, sizeOf: sizes.of },
    baseline: contestants.find(({ role }) => role === 'baseline')?.name ?? '',
    primaryMetric: metrics[0]?.name ?? '',
    contestants: contestants.map((each) => resultOf(each, metrics, measurements.get(each.name) ?? [])),
    targets: [],
    othersLoad: othersLoad(),
  };
  const absent = contestants.filter(({ open }) => isCannot(open)).map((each) => each.name);
  const judged = targets.filter(({ against = '' }) => !absent.includes(against));
  return { ...result, targets: judged.map((target) => judge(target, result, isQuick)) };
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
async function measureSafely({ measure }: Runner, size: number, round: Round): Promise<Measurement> {
  try {
    return await measure(size, round);
  } catch (error) {
    return { values: {}, problem: error instanceof Error ? (error.stack ?? error.message) : String(error) };
  }
}

function resultOf(
  { name, role, note, open }: Contestant<Measure>,
  metrics: BenchCase['metrics'],
  measurements: readonly Measurement[],
): ContestantResult {
  return {
    ...{ name, role, note },
    cannot: isCannot(open) ? open.cannot : undefined,
    metrics: metrics.map((each) => ({
      ...each,
      samples: measurements.map(({ values }) => values[each.name]).filter((value) => value !== undefined),
    })),
    problems: measurements.map(({ problem }) => problem).filter((problem) => problem !== undefined),
  };
}
