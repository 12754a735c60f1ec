/** Kafka's harness at a hundred thousand requests a second, at the two settings Kafka has published, and a third. */
import type { ScenarioCase, ScenarioOutcome } from '../lib/part.ts';
import { HARNESS_KINDS, type HarnessKind } from './harness-purgatories.ts';
import { runHarness } from './harness.ts';
import { prepareWorkload, type Workload, type WorkloadOptions } from './workload.ts';

const RATE_PER_S = 100_000;
const BYTES_PER_MIB = 2 ** 20;

const CPU = 'cpu';
const SHORTFALL = 'shortfall';
/** How far the expired share is from theory. */
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
    note: 'In theory 7.87 % expire. All requests wait for the same 3 keys, and nobody checks a key: what is completed is forced.',
    options: { ...KAFKAS, pct50Ms: 20, pct75Ms: 60 },
  },
  {
    name: "Kafka's harness: 100 000 requests/s, timeout 200 ms, half answer in 200 ms",
    note: 'In theory 50 % expire.',
    options: { ...KAFKAS, pct50Ms: 200, pct75Ms: 400 },
  },
  {
    name: 'the same with checks: 100 000 requests/s, timeout 200 ms, half answer in 20 ms',
    note: 'Every request waits for 3 keys of its own out of 100 000, and is completed by a check of the first.',
    options: { ...KAFKAS, keySpaceSize: 100_000, completeBy: 'check', pct50Ms: 20, pct75Ms: 60 },
  },
];

/** Drawn when the first contestant needs it, and the same for all of them. */
class LazyWorkload {
  readonly #options: Setting['options'];
  #prepared: Workload | undefined;

  constructor(options: Setting['options']) {
    this.#options = options;
  }

  of(num: number): Workload {
    if (this.#prepared?.options.num !== num) {
      this.#prepared = prepareWorkload({ ...this.#options, num, ratePerS: RATE_PER_S });
    }
    return this.#prepared;
  }
}

async function measure(workload: Workload, kind: HarnessKind): Promise<ScenarioOutcome> {
  const result = await runHarness(workload, kind);
  return {
    values: {
      [CPU]: result.cpuMs,
      'rate reached': result.actualRatePerS,
      [SHORTFALL]: Math.max(0, 1 - result.actualRatePerS / result.targetRatePerS) * 100,
      'p99 loop delay': result.loopDelayP99Ms,
      'peak heap': result.peakHeapBytes / BYTES_PER_MIB,
      'dead entries': result.deadEntries,
      expired: result.expiredShare * 100,
      [OFF_THEORY]: Math.abs(result.expiredShare - result.expiredInTheory) * 100,
    },
    problem: result.problem,
  };
}

function caseOf({ name, note, options }: Setting): ScenarioCase {
  const workload = new LazyWorkload(options);
  return {
    kind: 'scenario',
    name,
    note,
    size: { full: 500_000, quick: 20_000, of: 'requests' },
    rounds: 2,
    metrics: [
      { name: CPU, unit: 'ms' },
      { name: 'rate reached', unit: '/s', isAside: true },
      { name: SHORTFALL, unit: '%', isAside: true },
      { name: 'p99 loop delay', unit: 'ms', isAside: true },
      { name: 'peak heap', unit: 'MiB', isAside: true },
      { name: 'dead entries', unit: '' },
      { name: 'expired', unit: '%', isAside: true },
      { name: OFF_THEORY, unit: 'points', isAside: true },
    ],
    contestants: HARNESS_KINDS.map((kind) => ({
      name: kind.name,
      role: kind.role,
      open: (num) => measure(workload.of(num), kind),
    })),
    targets: [
      { kind: 'limit', contestant: 'ours', metric: SHORTFALL, atMost: 1 },
      { kind: 'limit', contestant: 'ours', metric: OFF_THEORY, atMost: 0.5 },
    ],
  };
}

export const harnessCases: readonly ScenarioCase[] = SETTINGS.map(caseOf);
