/** One round of one contestant of a micro case: benchmark.js decides how often, we say what. */
import Benchmark from 'benchmark';
import { CollectorWindow, type CollectorWatch } from './collector-watch.ts';
import { forceCollection } from './force-collection.ts';
import type { Residents } from './residents.ts';
import { COLLECTOR, NS_PER_MS, TIME, type Measurement } from './measurement.ts';
import type { MetricDefinition, MicroRun } from './part.ts';
import { median } from './statistics.ts';

/*
 * How benchmark.js is used, and why so.
 *
 * - `setup` and `teardown` stay unset. With either, it decompiles `fn` and compiles its source text anew, out of
 *   reach of everything the text refers to. Without, the compiled loop calls our closure.
 * - That call and the loop around it cost some nanoseconds, so one call does OPERATIONS_PER_CALL operations, in a
 *   loop of the contestant's own (see `MicroRun.run`). Their results are state the self-check reads afterwards:
 *   nothing is dead code.
 * - It runs synchronously: no event loop turns inside a round, so no host timer fires in it.
 * - It raises the count of calls until a cycle takes `minTime`, and then takes `minSamples` such cycles.
 *   `maxTime` next to nothing keeps it from taking more: rounds are ours to repeat.
 *
 * The collection is forced before `open`, not after it. A collection that finds everything alive that `open` made
 * teaches V8 that what comes from there lives long: it then allocates literals of such a place (an array of
 * arguments in the host's `setTimeout`, a handle) in the old space, where they keep dead young objects alive. That
 * made the host three times as slow here, which no program would see whose timers come and go.
 */
const OPERATIONS_PER_CALL = 256;
const NOT_LONGER_S = 1e-6;

export interface MicroEffort {
  /** Cycles whose median is the round's result. */
  readonly samples: number;
  /** The length of a cycle at least, in seconds. */
  readonly minTimeS: number;
}

export const MICRO_METRICS: readonly MetricDefinition[] = [
  { name: TIME, unit: 'ns/op' },
  { name: COLLECTOR, unit: 'ns/op', isAside: true },
];

export async function runMicro(
  open: (size: number) => MicroRun,
  size: number,
  effort: MicroEffort,
  collector: CollectorWatch,
  residents: Residents,
): Promise<Measurement> {
  forceCollection();
  const contestant = open(size);
  residents.keepFirst(open, contestant);
  const window = new CollectorWindow();
  const { nsPerOperation, operations, problem } = cycleAndClose(contestant, effort, window);
  const { totalMs } = await collector.read(window);
  return {
    values: { [TIME]: nsPerOperation, [COLLECTOR]: (totalMs * NS_PER_MS) / operations },
    problem,
  };
}

interface Cycles {
  readonly nsPerOperation: number;
  readonly operations: number;
  readonly problem: string | undefined;
}

/** Checks before it closes, and both before the event loop turns. */
function cycleAndClose(contestant: MicroRun, effort: MicroEffort, window: CollectorWindow): Cycles {
  try {
    const cycles = cycle(contestant, effort);
    window.close();
    return { ...cycles, problem: cycles.problem ?? contestant.check() };
  } finally {
    contestant.close();
  }
}

function cycle(contestant: MicroRun, { samples, minTimeS }: MicroEffort): Cycles {
  let operations = 0;
  const benchmark = new Benchmark({
    fn: () => {
      contestant.run(OPERATIONS_PER_CALL);
      operations += OPERATIONS_PER_CALL;
    },
    minSamples: samples,
    minTime: minTimeS,
    maxTime: NOT_LONGER_S,
  });
  benchmark.run({ async: false });
  const error = benchmark.error as Error | undefined;
  const secondsPerCall = median(benchmark.stats.sample as number[]);
  return {
    nsPerOperation: (secondsPerCall / OPERATIONS_PER_CALL) * 1e9,
    operations,
    problem: error?.message,
  };
}
