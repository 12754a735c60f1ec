import { resolve } from 'node:path';
import { availableParallelism } from 'node:os';
import { Command, CommanderError, Option } from 'commander';
import { number, wholeNumber } from '../shared/option-values.ts';
import { wrap } from '../shared/wrap.ts';

/** What a run is made of. */
export type ExampleOptions = DemoOptions | ServeOptions;

export interface DemoOptions {
  readonly mode: 'demo';
  readonly port: number;
  readonly workers: number;
  readonly durationMs: number;
}

export interface ServeOptions {
  readonly mode: 'serve';
  readonly port: number;
  readonly workers: number;
  readonly directory: string;
  readonly maxBytes: number;
  readonly keepMs: number;
  /** How long a digest waits for one more notification. */
  readonly graceMs: number;
}

const DESCRIPTION = [
  'A service that resizes images in the background: it takes them over HTTP, tries again what fails, and sends digests ',
  'of what is ready.\n\n',
  'Without --directory it shows itself: in a temporary directory, with customers that send bursts of images.',
].join('');

const EXIT_CODES = `
A SIGINT (Ctrl-C) or SIGTERM stops it when what is in work is done, a second one at once.
Exit code: 0 all is well, 1 an error, a failed check or unfinished jobs, 2 a wrong option, 130 demonstration interrupted.`;

interface RawOptions {
  readonly directory?: string;
  readonly port: number;
  readonly workers: number;
  readonly maxMegabytes: number;
  readonly keep: number;
  readonly grace: number;
  readonly duration: number;
  readonly short?: boolean;
}

/**
 * Reads the command line.
 *
 * @returns the options, or the exit code to end with: 0 after `--help`, 2 after a wrong option. What there is to
 * say was printed then.
 */
export function parseOptions(args: readonly string[]): ExampleOptions | number {
  try {
    return optionsOf(command().parse(args, { from: 'user' }).opts<RawOptions>());
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error;
    return error.exitCode === 0 ? 0 : 2;
  }
}

function optionsOf(raw: RawOptions): ExampleOptions {
  const { directory, port, workers, short = false } = raw;
  if (directory === undefined) {
    return { mode: 'demo', port, workers, durationMs: short ? 0 : raw.duration * 1_000 };
  }
  return {
    ...{ mode: 'serve', port, workers, directory },
    maxBytes: raw.maxMegabytes * 1_000_000,
    keepMs: raw.keep * 3_600_000,
    graceMs: raw.grace * 1_000,
  };
}

function command(): Command {
  return new Command('npm run example:jobs --')
    .description(DESCRIPTION)
    .option('--directory <directory>', 'where the images go; made if there is none', (path) => resolve(path))
    .option('--port <number>', 'of the service; 0 is a free one (0 to 65535)', wholeNumber(0, 65_535), 0)
    .option(
      '--workers <number>',
      'tasks in work at once (1 to 100)',
      wholeNumber(1, 100),
      availableParallelism(),
    )
    .option('--max-megabytes <number>', 'of an image (0.001 to 1000)', number(0.001, 1_000), 10)
    .option('--keep <hours>', 'how long files are kept (0.01 to 10000)', number(0.01, 10_000), 24)
    .option(
      '--grace <seconds>',
      'a digest waits that long for one more image (0.1 to 3600)',
      number(0.1, 3_600),
      10,
    )
    .option('--duration <seconds>', 'how long the demonstration sends images (0 to 120)', number(0, 120), 5)
    .addOption(new Option('--short', 'one burst of each customer is enough').conflicts('duration'))
    .helpOption('-h, --help', 'show this help')
    .addHelpText('after', wrap(EXIT_CODES))
    .showHelpAfterError('(--help explains the options)')
    .allowExcessArguments(false)
    .exitOverride();
}
