/** What the examples share: options that are checked, a signal to stop, and lines with the time in front. */
import { Command, InvalidArgumentError } from 'commander';

/** Returns a command that explains its options with `--help`, and ends the process with code 2 if one is wrong. */
export function command(script: string, description: string): Command {
  return new Command(`npm run ${script} --`)
    .description(description)
    .helpOption('-h, --help', 'show this help')
    .showHelpAfterError('(--help explains the options)')
    .exitOverride(({ exitCode }) => process.exit(exitCode === 0 ? 0 : 2));
}

/** Returns a parser of numbers from `min` to `max`. */
export function number(min: number, max: number): (text: string) => number {
  return (text) => {
    const value = text.trim() === '' ? NaN : Number(text);
    if (value >= min && value <= max) return value;
    throw new InvalidArgumentError(`It must be a number from ${min} to ${max}.`);
  };
}

/** Returns a parser of integers from `min` to `max`. */
export function integer(min: number, max: number): (text: string) => number {
  return (text) => {
    const value = number(min, max)(text);
    if (Number.isInteger(value)) return value;
    throw new InvalidArgumentError(`It must be an integer from ${min} to ${max}.`);
  };
}

/**
 * Returns a signal that fires at Ctrl-C (SIGINT), at SIGTERM, and when standard output is closed, as in `npm run demo | head`.
 * A second Ctrl-C ends the process at once.
 */
export function stopSignal(): AbortSignal {
  const stop = new AbortController();
  for (const name of ['SIGINT', 'SIGTERM'] as const)
    process.once(name, () => {
      stop.abort(name);
    });
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') throw error;
    stop.abort('EPIPE');
  });
  return stop.signal;
}

/** Awaits the program, and makes an exit code of its end: 1 and a line for an error, 130 if it was interrupted. */
export async function exitCodeOf(program: Promise<void>, stop: AbortSignal): Promise<void> {
  try {
    await program;
  } catch (error) {
    if (stop.aborted) say('interrupted');
    else console.error(`error: ${error instanceof Error ? error.message : String(error)}`);
    process.exitCode = stop.aborted ? 130 : 1;
  }
}

const startMs = performance.now();

/** Prints a line: `  1.2 s  the collector answers 503`. */
export function say(text: string): void {
  console.log(`${((performance.now() - startMs) / 1_000).toFixed(1).padStart(5)} s  ${text}`);
}

/** Returns a number as people read it: `12,345`. */
export function count(value: number): string {
  return value.toLocaleString('en-US', { maximumFractionDigits: 0 });
}
