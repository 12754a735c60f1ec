/**
 * Runs one case: every contestant in turn, round after round, in one process, so that warm-up, throttling and the load
 * of other programs affect all of them alike.
 */
import type { CollectorWatch } from './collector.ts';
import { OthersLoad } from './machine.ts';
import { isCannot, type BenchCase, type Measure, type Measurement, type Round } from './part.ts';
import { judge, type CaseResult } from './result.ts';

const DEFAULT_ROUNDS = 5;
/** A smoke run shows that every contestant works; its numbers are not compared. */
const QUICK_ROUNDS = 1;

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

/** A contestant that can be measured. */
interface Runner {
  readonly name: string;
  readonly measure: Measure;
  readonly measurements: Measurement[];
}

/** Number of calls of `onStep`. */
export function stepsOf(definition: BenchCase, options: Rounds): number {
  return runnersOf(definition).length * roundsOf(definition, options);
}

function roundsOf(
  { rounds = DEFAULT_ROUNDS }: BenchCase,
  { isQuick, quickRounds = QUICK_ROUNDS }: Rounds,
): number {
  return isQuick ? quickRounds : rounds;
}

function runnersOf({ contestants }: BenchCase): Runner[] {
  return contestants.flatMap(({ name, open }) =>
    isCannot(open) ? [] : [{ name, measure: open, measurements: [] }],
  );
}

export async function runCase(definition: BenchCase, options: RunOptions): Promise<CaseResult> {
  const { isQuick, collector, onStep } = options;
  const { name, size: sizes, warmUpShare = 0 } = definition;
  const othersLoad = new OthersLoad();
  const runners = runnersOf(definition);
  const round: Round = { isQuick, collector, residents: new Map() };
  const size = isQuick ? sizes.quick : sizes.full;
  if (warmUpShare > 0) {
    for (const runner of runners) await measureSafely(runner, Math.ceil(size * warmUpShare), round);
  }
  for (let index = 0; index < roundsOf(definition, options); index++) {
    for (const runner of rotate(runners, index)) {
      onStep(`${name}: ${runner.name}`);
      runner.measurements.push(await measureSafely(runner, size, round));
    }
  }
  const result = assemble(definition, runners, size, othersLoad.share());
  return { ...result, targets: (definition.targets ?? []).map((target) => judge(target, result, isQuick)) };
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

function assemble(
  { name, note, size: { of }, metrics, contestants }: BenchCase,
  runners: readonly Runner[],
  size: number,
  othersLoad: number,
): CaseResult {
  return {
    name,
    note,
    size,
    sizeOf: of,
    baseline: contestants.find(({ role }) => role === 'baseline')?.name ?? '',
    primaryMetric: metrics[0]?.name ?? '',
    contestants: contestants.map(({ name, role, note, open }) => {
      const measurements = runners.find((runner) => runner.name === name)?.measurements ?? [];
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
    }),
    targets: [],
    othersLoad,
  };
}
