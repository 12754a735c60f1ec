import { resolve } from 'node:path';
import { Command, CommanderError, InvalidArgumentError, Option } from 'commander';
import type { Durability } from 'escapement/diskqueue';
import { number, wholeNumber } from '../shared/option-values.ts';
import { wrap } from '../shared/wrap.ts';
import { MAX_LINE_BYTES } from './shipper/intake.ts';

/** What a run is made of. */
export type ExampleOptions = DemoOptions | ShipOptions;

export interface DemoOptions {
  readonly mode: 'demo';
  readonly durationMs: number;
  readonly ratePerSecond: number;
  readonly durability: Durability;
}

export interface ShipOptions {
  readonly mode: 'ship';
  readonly directory: string;
  readonly url: string;
  readonly durability: Durability;
  readonly maxBytes: number;
  readonly batchLines: number;
  readonly drainMs: number;
  readonly maxRetryMs: number;
  readonly statusMs: number;
  /** Whether standard output tells how many lines of the input are in the spool. */
  readonly isConfirming: boolean;
}

const DESCRIPTION = [
  'A log shipper: takes lines from standard input, keeps them in a spool on the disk, and posts them to a collector, ',
  'which may be away for a while.\n\n',
  'Without --spool and --forward it shows itself: with a producer, a collector, and somebody who kills them.',
].join('');

const EXIT_CODES = `
At the end of its input it forwards what is left; a SIGINT (Ctrl-C) or SIGTERM stops it, a second one at once. Either way what was not forwarded stays in the spool for the next start. A line of more than ${MAX_LINE_BYTES / 1024} KiB becomes several.
Exit code: 0 all is forwarded, 1 an error or a failed check, 2 a wrong option, 3 lines stay in the spool, 130 demonstration interrupted.`;

interface RawOptions {
  readonly spool?: string;
  readonly forward?: string;
  readonly durability: Durability;
  readonly maxBytes: number;
  readonly batch: number;
  readonly drain: number;
  readonly maxRetry: number;
  readonly status: number;
  readonly confirm: boolean;
  readonly duration: number;
  readonly rate: number;
}

/**
 * Reads the command line.
 *
 * @returns the options, or the exit code to end with: 0 after `--help`, 2 after a wrong option. What there is to
 * say was printed then.
 */
export function parseOptions(args: readonly string[]): ExampleOptions | number {
  try {
    const parsed = command().parse(args, { from: 'user' });
    return optionsOf(parsed.opts<RawOptions>(), (message) => parsed.error(message));
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error;
    return error.exitCode === 0 ? 0 : 2;
  }
}

function optionsOf(raw: RawOptions, fail: (message: string) => never): ExampleOptions {
  const { spool: directory, forward: url, durability, maxBytes } = raw;
  if (directory === undefined && url === undefined)
    return { mode: 'demo', durationMs: raw.duration * 1_000, ratePerSecond: raw.rate, durability };
  if (directory === undefined || url === undefined) fail('error: --spool and --forward go together');
  return {
    ...{ mode: 'ship', directory, url, durability, maxBytes },
    batchLines: raw.batch,
    drainMs: raw.drain * 1_000,
    maxRetryMs: raw.maxRetry * 1_000,
    statusMs: raw.status * 1_000,
    isConfirming: raw.confirm,
  };
}

function command(): Command {
  const durability = new Option('--durability <when>', 'what it means that a line is in the spool')
    .choices(['always', 'interval', 'os'])
    .default('always');
  return new Command('npm run example:spool --')
    .description(DESCRIPTION)
    .option('--spool <directory>', 'where the spool is; made if there is none', (path) => resolve(path))
    .option('--forward <url>', 'where lines are posted to', httpUrl)
    .addOption(durability)
    .option(
      '--max-bytes <number>',
      'of lines in the spool; when it is full, no more is read (65536 to 1e15)',
      maxBytes(),
      2 ** 30,
    )
    .option('--batch <number>', 'lines of a request (1 to 10000)', wholeNumber(1, 10_000), 500)
    .option(
      '--drain <seconds>',
      'how long it forwards at most when the input has ended (0 to 86400)',
      number(0, 86_400),
      30,
    )
    .option(
      '--max-retry <seconds>',
      'the longest time between two attempts (0.05 to 3600)',
      number(0.05, 3_600),
      10,
    )
    .option(
      '--status <seconds>',
      'how often it says how it does, unless on a terminal (0.05 to 3600)',
      number(0.05, 3_600),
      10,
    )
    .option(
      '--confirm',
      'print how many lines of the input are in the spool, each time there are more',
      false,
    )
    .option('--duration <seconds>', 'how long the demonstration writes (1 to 120)', number(1, 120), 8)
    .option('--rate <number>', 'lines that it writes a second (10 to 20000)', wholeNumber(10, 20_000), 2_000)
    .helpOption('-h, --help', 'show this help')
    .addHelpText('after', wrap(EXIT_CODES))
    .showHelpAfterError('(--help explains the options)')
    .allowExcessArguments(false)
    .exitOverride();
}

/** The longest line must have room. */
function maxBytes(): (text: string) => number {
  return wholeNumber(MAX_LINE_BYTES, 1e15);
}

function httpUrl(text: string): string {
  if (URL.canParse(text) && /^https?:$/.test(new URL(text).protocol)) return text;
  throw new InvalidArgumentError('It must be a URL with http or https.');
}
