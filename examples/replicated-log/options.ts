import { Command, CommanderError } from 'commander';
import { number, wholeNumber } from '../shared/option-values.ts';
import { wrap } from '../shared/wrap.ts';

/** What a run is made of. */
export interface ExampleOptions {
  readonly durationMs: number;
  readonly ratePerSecond: number;
  readonly consumers: number;
  readonly partitions: number;
}

const DESCRIPTION = [
  'Starts a small broker on loopback, a leader and two followers as processes of their own, sends it produces and ',
  'long-polling consumers, kills a follower with SIGKILL in the middle, and starts it again.\n\n',
  'Every 500 ms a line shows what waits in the purgatories of the leader, what was completed, and what expired.',
].join('');

const EXIT_CODES = `
Exit code: 0 all checks passed, 1 a check failed, 2 a wrong option, 130 interrupted (Ctrl-C).`;

interface RawOptions {
  readonly duration: number;
  readonly rate: number;
  readonly consumers: number;
  readonly partitions: number;
}

/**
 * Reads the command line.
 *
 * @returns the options, or the exit code to end with: 0 after `--help`, 2 after a wrong option. What there is to
 * say was printed then.
 */
export function parseOptions(args: readonly string[]): ExampleOptions | number {
  try {
    const raw = command().parse(args, { from: 'user' }).opts<RawOptions>();
    return {
      durationMs: raw.duration * 1_000,
      ratePerSecond: raw.rate,
      consumers: raw.consumers,
      partitions: raw.partitions,
    };
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error;
    return error.exitCode === 0 ? 0 : 2;
  }
}

function command(): Command {
  return new Command('npm run example:replicated-log --')
    .description(DESCRIPTION)
    .option('--duration <seconds>', 'how long records are produced (1 to 120)', number(1, 120), 8)
    .option('--rate <number>', 'produce requests a second (1 to 1000)', number(1, 1_000), 300)
    .option('--consumers <number>', 'long-polling consumers (1 to 100)', wholeNumber(1, 100), 6)
    .option('--partitions <number>', 'partitions of the log (1 to 16)', wholeNumber(1, 16), 3)
    .helpOption('-h, --help', 'show this help')
    .addHelpText('after', wrap(EXIT_CODES))
    .showHelpAfterError('(--help explains the options)')
    .allowExcessArguments(false)
    .exitOverride();
}
