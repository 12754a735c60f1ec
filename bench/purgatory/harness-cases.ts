/** Kafka's harness at a hundred thousand requests a second, at the two settings that Kafka has published, and a third. */
import { scenario, type Scenario } from '../lib/kinds.ts';
import { aside, atMost, contest, metric, MIB, type BenchCase, type Measurement } from '../lib/part.ts';
import { runHarness } from './harness.ts';
import { PURGATORIES, type PurgatoryKind } from './purgatories.ts';
import { prepareWorkload, type Workload, type WorkloadOptions } from './workload.ts';

const RATE_PER_S = 100_000;

const CPU = 'cpu';
const SHORTFALL = 'shortfall';
/** Distance of the expired share from theory. */
const OFF_THEORY = 'off theory';

interface Setting {
  readonly name: string;
  readonly note: string;
  readonly options: Omit<WorkloadOptions, 'num' | 'ratePerS'>;
}

const KAFKAS = { timeoutMs: 200, keys: 3, keySpaceSize: 100, completeBy: 'force' } as const;

const SETTINGS: readonly Setting[] = [
  {
    name: "Kafka's harness: 100 000 requests/s, timeout 200 ms, half answer in 20 ms",
    note: 'In theory 7.87 % expire. All requests wait for the same 3 keys, and are completed by forceComplete, not by a check.',
    options: { ...KAFKAS, pct50Ms: 20, pct75Ms: 60 },
  },
  {
    name: "Kafka's harness: 100 000 requests/s, timeout 200 ms, half answer in 200 ms",
    note: 'In theory 50 % expire.',
    options: { ...KAFKAS, pct50Ms: 200, pct75Ms: 400 },
  },
  {
    name: 'the same with checks: 100 000 requests/s, timeout 200 ms, half answer in 20 ms',
    note: 'Every request waits for 3 of 100 000 keys, and is completed by a check of the first.',
    options: { ...KAFKAS, keySpaceSize: 100_000, completeBy: 'check', pct50Ms: 20, pct75Ms: 60 },
  },
];

async function measure(workload: Workload, kind: PurgatoryKind): Promise<Measurement> {
  const result = await runHarness(workload, kind);
  return {
    values: {
      [CPU]: result.cpuMs,
      'rate reached': result.actualRatePerS,
      [SHORTFALL]: Math.max(0, 1 - result.actualRatePerS / result.targetRatePerS) * 100,
      'p99 loop delay': result.loopDelayP99Ms,
      'peak heap': result.peakHeapBytes / MIB,
      'dead entries': result.deadEntries,
      expired: result.expiredShare * 100,
      [OFF_THEORY]: Math.abs(result.expiredShare - result.expiredInTheory) * 100,
    },
    problem: result.problem,
  };
}

function caseOf({ name, note, options }: Setting): BenchCase {
  let workload: Workload | undefined; // drawn once, for all contestants
  return scenario({
    name,
    note,
    size: { full: 500_000, quick: 20_000, of: 'requests' },
    rounds: 2,
    metrics: [
      metric(CPU, 'ms'),
      aside('rate reached', '/s'),
      aside(SHORTFALL, '%'),
      aside('p99 loop delay', 'ms'),
      aside('peak heap', 'MiB'),
      metric('dead entries'),
      aside('expired', '%'),
      aside(OFF_THEORY, 'points'),
    ],
    contestants: contest<PurgatoryKind, Scenario>(
      PURGATORIES,
      (kind) => (num) =>
        measure((workload ??= prepareWorkload({ ...options, num, ratePerS: RATE_PER_S })), kind),
    ),
    targets: [atMost('ours', SHORTFALL, 1), atMost('ours', OFF_THEORY, 0.5)],
  });
}

export const harnessCases = SETTINGS.map(caseOf);
