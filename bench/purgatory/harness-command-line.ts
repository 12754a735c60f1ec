/** What `npm run bench:purgatory -- …` accepts: the options of Kafka's harness, and two of our own. */
import { Command, CommanderError, InvalidArgumentError, Option } from 'commander';
import { wrap } from '../lib/wrap.ts';
import { UsageError } from '../lib/usage-error.ts';
import type { HarnessKind } from './harness-purgatories.ts';
import type { CompleteBy, WorkloadOptions } from './workload.ts';

export interface HarnessSettings {
  readonly workload: WorkloadOptions;
  readonly purgatory: HarnessKind['id'];
  readonly isVerbose: boolean;
}

interface RawOptions {
  readonly num: number;
  readonly rate: number;
  readonly timeout: number;
  readonly pct50: number;
  readonly pct75: number;
  readonly keys: number;
  readonly keySpaceSize: number;
  readonly verbose: boolean;
  readonly completeBy: CompleteBy;
  readonly purgatory: HarnessKind['id'];
}

const EXPLANATION = `
Kafka's TestPurgatoryPerformance with the meaning it had in Scala: requests arrive at random, exponentially, and
wait for their timeout; those whose latency, drawn from a lognormal distribution, is shorter complete before. The
result line has Kafka's columns. 'Keeping up' is an actual rate close to the target rate.

Exit codes: 0 measured; 1 a request was lost, or the expired share is off by more than 0.5 points (more for a run
of few requests), see stderr; 2 a mistake on the command line.

Example: npm run bench:purgatory -- --num 1000000 --rate 100000 --timeout 200 --pct50 20 --pct75 60
`;

/**
 * @returns the settings, or `undefined` if `--help` was printed.
 * @throws UsageError - an unknown option, one that is missing, a value that makes no sense.
 */
export function parseHarnessCommandLine(
  words: readonly string[],
  out: (text: string) => void,
): HarnessSettings | undefined {
  const command = describeCommand(out);
  try {
    command.parse(words, { from: 'user' });
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error;
    if (error.exitCode === 0) return undefined;
    throw new UsageError(error.message.replace(/^error: /, ''));
  }
  return toSettings(command.opts<RawOptions>());
}

function describeCommand(out: (text: string) => void): Command {
  return new Command('npm run bench:purgatory --')
    .description('Measures how many requests a second a purgatory keeps up with.')
    .requiredOption('--num <count>', 'requests', wholeNumber)
    .requiredOption('--rate <requests>', 'requests a second', positive)
    .requiredOption('--timeout <ms>', 'timeout of a request', wholeNumber)
    .requiredOption('--pct50 <ms>', '50th percentile of the latency', positive)
    .requiredOption('--pct75 <ms>', '75th percentile of the latency', positive)
    .option('--keys <count>', 'keys of a request', wholeNumber, 3)
    .option('--key-space-size <count>', 'keys there are', wholeNumber, 100)
    .option('--verbose <true|false>', 'explain the result line', trueOrFalse, true)
    .addOption(
      new Option('--complete-by <way>', 'forceComplete, as Kafka; or a check of a key of its own')
        .choices(['force', 'check'] satisfies CompleteBy[])
        .default('force'),
    )
    .addOption(
      new Option('--purgatory <name>', 'what to measure')
        .choices(['naive', 'kafka', 'ours'] satisfies HarnessKind['id'][])
        .default('ours'),
    )
    .addHelpText('after', wrap(EXPLANATION))
    .allowExcessArguments(false)
    .exitOverride()
    .configureOutput({ writeOut: out, writeErr: () => undefined });
}

function toSettings(raw: RawOptions): HarnessSettings {
  const { num, rate, timeout, pct50, pct75, keys, keySpaceSize, completeBy, purgatory, verbose } = raw;
  if (pct75 <= pct50) throw new UsageError(`--pct75 must be more than --pct50, got ${pct75} and ${pct50}`);
  if (keys > keySpaceSize) {
    throw new UsageError(`--keys must be at most --key-space-size, got ${keys} and ${keySpaceSize}`);
  }
  return {
    workload: {
      num,
      ratePerS: rate,
      timeoutMs: timeout,
      pct50Ms: pct50,
      pct75Ms: pct75,
      keys,
      keySpaceSize,
      completeBy,
    },
    purgatory,
    isVerbose: verbose,
  };
}

function positive(text: string): number {
  const value = Number(text);
  if (text.trim() !== '' && Number.isFinite(value) && value > 0) return value;
  throw new InvalidArgumentError('It must be a number above 0.');
}

function wholeNumber(text: string): number {
  const value = positive(text);
  if (Number.isSafeInteger(value)) return value;
  throw new InvalidArgumentError('It must be a whole number above 0.');
}

function trueOrFalse(text: string): boolean {
  if (text === 'true' || text === 'false') return text === 'true';
  throw new InvalidArgumentError("It must be 'true' or 'false'.");
}
