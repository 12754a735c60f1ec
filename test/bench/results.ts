import type { BenchResult, CaseResult, ContestantResult } from '../../bench/lib/result.ts';

/** A contestant with one metric, `time`. */
export function contestant(
  name: string,
  role: ContestantResult['role'],
  samples: readonly number[],
): ContestantResult {
  return { name, role, metrics: [{ name: 'time', unit: 'ns/op', samples }], problems: [] };
}

/** The host against ours. */
export function caseOf(host: readonly number[], ours: readonly number[]): CaseResult {
  return {
    name: 'fill',
    size: 10,
    sizeOf: 'timers',
    baseline: 'host',
    primaryMetric: 'time',
    contestants: [contestant('host', 'baseline', host), contestant('ours', 'ours', ours)],
    targets: [],
    othersLoad: 0,
  };
}

export function resultOf(cases: readonly CaseResult[]): BenchResult {
  return {
    schema: 1,
    date: '2026-01-01T00:00:00.000Z',
    quick: false,
    machine: { node: '20', v8: '11', platform: 'linux', arch: 'x64', cpu: 'a', cores: 2, memoryGiB: 4 },
    parts: [{ name: 'timer', title: 'timers', remarks: [], cases }],
  };
}
