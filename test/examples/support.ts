import type { ChildProcessWithoutNullStreams } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { vi } from 'vitest';
import { bundleProgram } from '../bundle-program.ts';
import { finished, spawnNode } from '../run-program.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

/** The end of an example, and everything that it printed. */
export interface ExampleRun {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

const { scripts } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as {
  scripts: Record<string, string>;
};

/** Starts an example with the command of its npm script, but without npm, so that it receives signals. */
export function startExample(name: string, ...options: readonly string[]): ChildProcessWithoutNullStreams {
  const script = scripts[name === 'request-deadlines' ? 'demo' : `example:${name}`] ?? '';
  const [, ...args] = script.split(' ');
  return spawnNode([...args, ...options]);
}

/**
 * Returns the bundle of an example. It starts in a fifth of the time: one run of each example by its npm script is enough. Only the
 * bundle of an example that starts no other file of its own can do everything.
 */
export function bundleExample(name: string): string {
  return bundleProgram(new URL(`../../examples/${name}/main.ts`, import.meta.url));
}

/**
 * Runs an example to its end.
 *
 * @param onLine - called with each line that it prints.
 */
export function runExample(
  example: ChildProcessWithoutNullStreams,
  onLine: (line: string) => unknown = () => undefined,
): Promise<ExampleRun> {
  createInterface(example.stdout).on('line', onLine);
  return endOf(example);
}

/** Waits for the end of an example. */
export async function endOf(example: ChildProcessWithoutNullStreams): Promise<ExampleRun> {
  const { stdout, ...rest } = await finished(example);
  return { ...rest, stdout: stdout.toString() };
}

/** Runs an example, and interrupts it as Ctrl-C does when it prints a line that matches. */
export function interruptExample(example: ChildProcessWithoutNullStreams, at: RegExp): Promise<ExampleRun> {
  let isInterrupted = false;
  return runExample(example, (line) => {
    if (isInterrupted || !at.test(line)) return;
    isInterrupted = true; // a second signal would end it at once
    example.kill('SIGINT');
  });
}

/** Returns the columns of the widest line: an example fits a terminal of 80. */
export function widthOf(printed: string): number {
  return Math.max(...printed.split('\n').map((line) => line.length));
}

/** Returns the number before a word: 12345 for `12,345 timed out`. */
export function numberBefore(word: string, printed: string): number {
  return Number(new RegExp(`([\\d,.]+) ${word}`).exec(printed)?.[1]?.replaceAll(',', ''));
}

/** Returns the id of every process that the output names, as in `(pid 123)`. */
export function pidsIn(printed: string): number[] {
  return [...new Set([...printed.matchAll(/\(pid (\d+)\)/g)].map(([, pid]) => Number(pid)))];
}

export function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

/** Resolves when the check passes; a busy machine has time. */
export async function eventually(check: () => unknown): Promise<void> {
  await vi.waitFor(check, { timeout: 60_000 });
}
