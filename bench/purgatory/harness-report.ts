/** What `npm run bench:purgatory` prints: Kafka's lines as Kafka prints them, then what it leaves out. */
import type { CollectorTime } from '../lib/collector-watch.ts';
import type { HarnessResult } from './harness.ts';
import { describeIntervals, describeLatencies } from './sample-pools.ts';
import type { Workload } from './workload.ts';

const BYTES_PER_MIB = 2 ** 20;
const RESULT_HEAD = [
  '<elapsed time ms>',
  '<target rate>',
  '<actual rate>',
  '<process cpu time ms>',
  '<young gc count> <old gc count>',
  '<young gc time ms> <old gc time ms>',
].join('\t');

/** What was drawn, before the run. */
export function renderSamples({ latencies, intervals, options }: Workload): string {
  const { pct75, pct50, min, max } = describeLatencies(latencies);
  const interval = describeIntervals(intervals);
  return [
    `# latency samples: pct75 = ${pct75}, pct50 = ${pct50}, min = ${min}, max = ${max}`,
    `# interval samples: rate = ${interval.ratePerS.toFixed(6)}, min = ${interval.min}, max = ${interval.max}`,
    `# enqueue rate (${options.num} requests):`,
    '',
  ].join('\n');
}

/** @param collections - those of the run. */
export function renderHarnessResult(
  result: HarnessResult,
  collections: CollectorTime,
  isVerbose: boolean,
): string {
  const lines = [resultLine(result, collections)];
  if (isVerbose) lines.unshift(`# ${RESULT_HEAD}`);
  return [...lines, ...restOf(result), ''].join('\n');
}

function resultLine(result: HarnessResult, { count, totalMs, young }: CollectorTime): string {
  return [
    Math.round(result.elapsedMs),
    result.targetRatePerS.toFixed(6),
    result.actualRatePerS.toFixed(6),
    Math.round(result.cpuMs),
    `${young.count} ${count - young.count}`,
    `${Math.round(young.totalMs)} ${Math.round(totalMs - young.totalMs)}`,
  ].join('\t');
}

function restOf(result: HarnessResult): string[] {
  const { actualRatePerS, targetRatePerS } = result;
  // So few requests that all were asked for in the first millisecond.
  const reached = Number.isFinite(targetRatePerS) ? percent(actualRatePerS / targetRatePerS) : '–';
  return [
    `# rate reached: ${reached} of the target`,
    `# expired: ${percent(result.expiredShare)}; in theory ${percent(result.expiredInTheory)}`,
    `# late: ${percent(result.lateShare)} should have completed, and the event loop came too late`,
    `# event loop delay: p99 ${result.loopDelayP99Ms.toFixed(2)} ms`,
    `# heap: ${mebibytes(result.peakHeapBytes)} at most; ${mebibytes(result.leftBytes)} more alive after than before`,
    `# watch entries of completed requests: ${Math.round(result.deadEntries)} on average`,
  ];
}

function percent(share: number): string {
  return `${(share * 100).toFixed(2)} %`;
}

function mebibytes(bytes: number): string {
  return `${(bytes / BYTES_PER_MIB).toFixed(1)} MiB`;
}
