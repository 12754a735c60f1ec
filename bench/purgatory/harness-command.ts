/** What `npm run bench:purgatory` accepts and prints: Kafka's options and its line of results, and more results. */
import { Command, InvalidArgumentError, Option } from 'commander';
import type { CollectorTime } from '../lib/collector.ts';
import { MIB } from '../lib/part.ts';
import { parseWords, UsageError } from '../lib/program.ts';
import { wrap } from '../lib/terminal.ts';
import { percent, type HarnessResult } from './harness.ts';
import type { PurgatoryKind } from './purgatories.ts';
import type { WorkloadOptions } from './workload.ts';

export interface HarnessSettings {
  readonly workload: WorkloadOptions;
  readonly purgatory: PurgatoryKind['id'];
}

interface RawOptions
  extends
    Pick<WorkloadOptions, 'num' | 'keys' | 'keySpaceSize'>,
    Pick<HarnessSettings, 'purgatory'>,
    Readonly<Record<'rate' | 'timeout' | 'pct50' | 'pct75', number>> {}

const EXPLANATION = `
Kafka's TestPurgatoryPerformance as its Scala version defined it: requests arrive at exponential intervals and wait
for their timeout; those with a shorter latency, drawn from a lognormal distribution, complete before. The result line
has Kafka's columns. A purgatory keeps up if its actual rate is close to the target rate.

Exit codes: 0 measured; 1 a request was lost, or the expired share is off by more than 0.5 points (more for a run
of few requests), see stderr; 2 a mistake on the command line.

Example: npm run bench:purgatory -- --num 1000000 --rate 100000 --timeout 200 --pct50 20 --pct75 60
`;

/**
 * @returns the settings, or `undefined` if `--help` was printed.
 * @throws UsageError - an unknown or missing option, or an invalid value.
 */
export function parseHarnessCommandLine(
  words: readonly string[],
  out: (text: string) => void,
): HarnessSettings | undefined {
  const command = new Command('npm run bench:purgatory --')
    .description('Measures whether a purgatory keeps up with a rate of requests.')
    .requiredOption('--num <count>', 'number of requests', wholeNumber)
    .requiredOption('--rate <requests>', 'requests a second', positive)
    .requiredOption('--timeout <ms>', 'timeout of a request', wholeNumber)
    .requiredOption('--pct50 <ms>', '50th percentile of the latency', positive)
    .requiredOption('--pct75 <ms>', '75th percentile of the latency', positive)
    .option('--keys <count>', 'number of keys of a request', wholeNumber, 3)
    .option('--key-space-size <count>', 'number of distinct keys', wholeNumber, 100)
    .addOption(
      new Option('--purgatory <name>', 'the purgatory to measure')
        .choices(['naive', 'kafka', 'ours'] satisfies PurgatoryKind['id'][])
        .default('ours'),
    )
    .addHelpText('after', wrap(EXPLANATION))
    .allowExcessArguments(false);
  return parseWords(command, words, out) ? toSettings(command.opts<RawOptions>()) : undefined;
}

function toSettings({ rate, timeout, pct50, pct75, purgatory, ...rest }: RawOptions): HarnessSettings {
  const { keys, keySpaceSize } = rest;
  if (pct75 <= pct50) throw new UsageError(`--pct75 must be > --pct50. Received ${pct75} and ${pct50}`);
  if (keys > keySpaceSize) {
    throw new UsageError(`--keys must be <= --key-space-size. Received ${keys} and ${keySpaceSize}`);
  }
  const workload = { ...rest, ratePerS: rate, timeoutMs: timeout, pct50Ms: pct50, pct75Ms: pct75 };
  return { workload, purgatory };
}

function positive(text: string): number {
  const value = Number(text);
  if (text.trim() !== '' && Number.isFinite(value) && value > 0) return value;
  throw new InvalidArgumentError('It must be a number > 0.');
}

function wholeNumber(text: string): number {
  const value = positive(text);
  if (Number.isSafeInteger(value)) return value;
  throw new InvalidArgumentError('It must be an integer > 0.');
}

const RESULT_HEAD =
  '<elapsed time ms>\t<target rate>\t<actual rate>\t<process cpu time ms>\t<young gc count> <old gc count>\t' +
  '<young gc time ms> <old gc time ms>';

/** @param collections - the collector's pauses during the run. */
export function renderHarnessResult(result: HarnessResult, collections: CollectorTime): string {
  const { actualRatePerS, targetRatePerS } = result;
  const { count, totalMs, young } = collections;
  const columns = [
    Math.round(result.elapsedMs),
    targetRatePerS.toFixed(6),
    actualRatePerS.toFixed(6),
    Math.round(result.cpuMs),
    `${young.count} ${count - young.count}`,
    `${Math.round(young.totalMs)} ${Math.round(totalMs - young.totalMs)}`,
  ];
  // Infinite if there are so few requests that all are due in the first millisecond.
  const reached = Number.isFinite(targetRatePerS) ? percent(actualRatePerS / targetRatePerS) : '–';
  return [
    `# ${RESULT_HEAD}`,
    columns.join('\t'),
    `# rate reached: ${reached} of the target`,
    `# expired: ${percent(result.expiredShare)}; in theory ${percent(result.expiredInTheory)}`,
    `# late: ${percent(result.lateShare)} should have completed, but the event loop was late`,
    `# event loop delay: p99 ${result.loopDelayP99Ms.toFixed(2)} ms`,
    `# heap: ${(result.peakHeapBytes / MIB).toFixed(1)} MiB at most`,
    `# watch entries of completed requests: ${Math.round(result.deadEntries)} on average`,
    '',
  ].join('\n');
}
