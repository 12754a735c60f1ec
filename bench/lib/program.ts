/** What both programs share: the build they measure, their command lines, and their exit codes. */
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { CommanderError, type Command } from 'commander';

const ROOT = join(import.meta.dirname, '../..');
const TSUP = join(ROOT, 'node_modules/tsup/dist/cli-default.js');
const EXIT_PROBLEM = 1;
const EXIT_USAGE = 2;

/** A wrong command line: a message on stderr, exit code 2, nothing measured. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
}

export function print(text: string): void {
  process.stdout.write(text);
}

/** Runs a program. `main` returns the self-checks that failed; any makes the exit code 1. */
export async function runProgram(main: () => Promise<readonly string[]>): Promise<void> {
  try {
    const problems = await main();
    for (const problem of problems) process.stderr.write(`self-check failed: ${problem}\n`);
    process.exitCode = problems.length === 0 ? 0 : EXIT_PROBLEM;
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
    process.stderr.write(`error: ${error.message}\nSee --help.\n`);
    process.exitCode = EXIT_USAGE;
  }
}

/**
 * @returns whether `command` has options to read: false if it printed its help, with `out`.
 * @throws UsageError - an unknown option, a missing or an invalid value.
 */
export function parseWords(command: Command, words: readonly string[], out: (text: string) => void): boolean {
  command.exitOverride().configureOutput({ writeOut: out, writeErr: () => undefined });
  try {
    command.parse(words, { from: 'user' });
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error;
    if (error.exitCode === 0) return false;
    throw new UsageError(error.message.replace(/^error: /, ''));
  }
  return true;
}

/**
 * Builds the library into `bench/dist`, bundled as users install it, without declaration files.
 * `tsconfig.build.json` resolves `escapement` to it.
 */
export function buildLibrary(): void {
  if (measuresSources()) {
    process.stderr.write('warning: measuring the sources, not a build; use `npm run bench`\n');
    return;
  }
  process.stderr.write('Building the library\n');
  const words = ['--no-dts', '--format', 'esm', '--out-dir', 'bench/dist'];
  execFileSync(process.execPath, [TSUP, ...words], { cwd: ROOT, stdio: 'inherit' });
}

/** The root's `tsconfig.json` resolves to the sources, whose loader wraps every function to keep its name. */
function measuresSources(): boolean {
  try {
    return import.meta.resolve('escapement').endsWith('/src/index.ts');
  } catch {
    return false; // not built yet
  }
}
