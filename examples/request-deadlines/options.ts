import { statSync } from 'node:fs';
import { Command, CommanderError, InvalidArgumentError } from 'commander';
import { number, wholeNumber } from '../shared/option-values.ts';
import { wrap } from '../shared/wrap.ts';
import type { Lognormal } from './server/lognormal.ts';

/** What a run is made of. */
export interface DemoOptions {
  readonly durationMs: number;
  readonly ratePerSecond: number;
  readonly timeoutMs: number;
  readonly connections: number;
  /** Where the report goes; undefined: nowhere. */
  readonly htmlFile: string | undefined;
}

/** How long the simulated work of a request takes. With the default deadline about one request in ten is late. */
export const SERVICE_TIME: Lognormal = { medianMs: 200, sigma: 0.7 };

const DESCRIPTION = [
  'Starts an HTTP server on loopback in which every request carries a deadline on one shared SystemTimer, ',
  'sends it real requests from another process, and shows how the wheels do.\n\n',
  `The work of a request is simulated: a lognormal time, median ${SERVICE_TIME.medianMs} ms, `,
  `sigma ${SERVICE_TIME.sigma}. A request whose work is not done by its deadline is answered 504, `,
  'so the share that must time out is known.',
].join('');

const EXIT_CODES = `
Exit code: 0 all checks passed, 1 a check failed, 2 a wrong option, 130 interrupted (Ctrl-C).`;

interface RawOptions {
  readonly duration: number;
  readonly rate: number;
  readonly timeoutMs: number;
  readonly connections: number;
  readonly html: string | false;
}

/**
 * Reads the command line.
 *
 * @returns the options, or the exit code to end with: 0 after `--help`, 2 after a wrong option. What there is to
 * say was printed then.
 */
export function parseOptions(args: readonly string[]): DemoOptions | number {
  try {
    const raw = command().parse(args, { from: 'user' }).opts<RawOptions>();
    return {
      durationMs: raw.duration * 1_000,
      ratePerSecond: raw.rate,
      timeoutMs: raw.timeoutMs,
      connections: raw.connections,
      htmlFile: raw.html === false ? undefined : raw.html,
    };
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error;
    return error.exitCode === 0 ? 0 : 2;
  }
}

function command(): Command {
  return new Command('npm run demo --')
    .description(DESCRIPTION)
    .option('--duration <seconds>', 'how long requests are sent (0.1 to 120)', number(0.1, 120), 6)
    .option(
      '--rate <number>',
      'requests a second, as a Poisson process (1 to 20000)',
      number(1, 20_000),
      3_000,
    )
    .option(
      '--timeout-ms <ms>',
      'deadline of a request, in milliseconds (1 to 60000)',
      number(1, 60_000),
      500,
    )
    .option('--connections <number>', 'client connections (1 to 5000)', wholeNumber(1, 5_000), 1_000)
    .option('--html <file>', 'where to write the HTML report', fileName, 'reports/request-deadlines.html')
    .option('--no-html', 'write no HTML report')
    .helpOption('-h, --help', 'show this help')
    .addHelpText('after', wrap(EXIT_CODES))
    .showHelpAfterError('(--help explains the options)')
    .exitOverride();
}

/** What is plainly wrong is said before the run, not after it. */
function fileName(text: string): string {
  if (text.trim() === '') throw new InvalidArgumentError('It must be the name of a file.');
  if (isDirectory(text)) throw new InvalidArgumentError('It is a directory.');
  return text;
}

function isDirectory(path: string): boolean {
  try {
    return statSync(path, { throwIfNoEntry: false })?.isDirectory() === true;
  } catch (error) {
    throw new InvalidArgumentError(error instanceof Error ? `${error.message}.` : String(error));
  }
}
