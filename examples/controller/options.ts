import { statSync } from 'node:fs';
import { relative, resolve } from 'node:path';
import { Command, CommanderError, InvalidArgumentError } from 'commander';
import { number, wholeNumber } from '../shared/option-values.ts';
import { wrap } from '../shared/wrap.ts';

/** What a run is made of. */
export type ExampleOptions = DemoOptions | WatchOptions;

export interface DemoOptions {
  readonly mode: 'demo';
  readonly durationMs: number;
  readonly port: number;
}

export interface WatchOptions {
  readonly mode: 'watch';
  readonly sourceDirectory: string;
  readonly outputDirectory: string;
  readonly workers: number;
  readonly maxRetries: number;
  readonly resyncMs: number;
  readonly port: number;
}

const DESCRIPTION = [
  'A controller: keeps an output directory as a source directory wants it. Each *.json below the source becomes a ',
  '*.conf below the output, is rendered again when it changes, and removed when it goes.\n\n',
  'Without --source and --output it shows itself: in temporary directories, with a writer that breaks things.',
].join('');

const EXIT_CODES = `
A SIGINT (Ctrl-C) or SIGTERM stops it when what is queued is done, a second one at once.
Exit code: 0 all is well, 1 a file could not be rendered or a check failed, 2 a wrong option, 130 demonstration interrupted.`;

interface RawOptions {
  readonly source?: string;
  readonly output?: string;
  readonly duration: number;
  readonly workers: number;
  readonly maxRetries: number;
  readonly resync: number;
  readonly port: number;
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
  const { source, output, workers, maxRetries, port } = raw;
  if (source === undefined && output === undefined)
    return { mode: 'demo', durationMs: raw.duration * 1_000, port };
  if (source === undefined || output === undefined) fail('error: --source and --output go together');
  if (isInside(source, output) || isInside(output, source))
    fail('error: --source and --output must not be inside each other');
  const resyncMs = raw.resync * 1_000;
  return {
    mode: 'watch',
    sourceDirectory: source,
    outputDirectory: output,
    workers,
    maxRetries,
    resyncMs,
    port,
  };
}

function isInside(outer: string, inner: string): boolean {
  const [first] = relative(outer, inner).split(/[\\/]/);
  return first !== '..';
}

function command(): Command {
  return new Command('npm run example:controller --')
    .description(DESCRIPTION)
    .option('--source <directory>', 'where the *.json are', sourceDirectory)
    .option('--output <directory>', 'where the *.conf go; made if there is none', (path) => resolve(path))
    .option('--workers <number>', 'files that are worked on at once (1 to 100)', wholeNumber(1, 100), 4)
    .option('--max-retries <number>', 'retries before a file is given up (0 to 100)', wholeNumber(0, 100), 8)
    .option(
      '--resync <seconds>',
      'from one look at everything to the next (0.1 to 3600)',
      number(0.1, 3_600),
      30,
    )
    .option('--port <number>', 'of /metrics; 0 is a free one (0 to 65535)', wholeNumber(0, 65_535), 0)
    .option('--duration <seconds>', 'how long the demonstration writes (1 to 120)', number(1, 120), 8)
    .helpOption('-h, --help', 'show this help')
    .addHelpText('after', wrap(EXIT_CODES))
    .showHelpAfterError('(--help explains the options)')
    .allowExcessArguments(false)
    .exitOverride();
}

function sourceDirectory(path: string): string {
  if (statSync(path, { throwIfNoEntry: false })?.isDirectory() === true) return resolve(path);
  throw new InvalidArgumentError('It is no directory.');
}
