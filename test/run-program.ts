import { spawn, spawnSync, type ChildProcess, type ChildProcessWithoutNullStreams } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('..', import.meta.url));

/** How a program ended. */
export interface ProgramResult {
  readonly stdout: string;
  readonly stderr: string;
  /** The lines of `stdout` that are not empty. */
  readonly lines: string[];
  /** The exit code; null if it had to be killed. */
  readonly status: number | null;
}

/** How a program is run. */
export interface ProgramSettings {
  readonly type?: 'module' | 'commonjs';
  readonly flags?: readonly string[];
  /** Besides the environment of the tests. */
  readonly env?: Readonly<Record<string, string>>;
}

/** Longest run of a program, in milliseconds: past it, it hangs and is killed. */
const MOST_MS = 20_000;

/**
 * Runs a program in a Node process of its own, against the built package, as its users do:
 * `import … from 'escapement'` resolves through package.json.
 */
export function runProgram(source: string, settings: ProgramSettings = {}): ProgramResult {
  return runNode(argumentsOf(source, settings), settings.env);
}

/** The same without blocking, so that programs that mostly wait can run at the same time. */
export async function startProgram(source: string, settings: ProgramSettings = {}): Promise<ProgramResult> {
  const { stdout, stderr, code } = await finished(spawnProgram(source, settings));
  return resultOf({ stdout: stdout.toString(), stderr, status: code });
}

/** The same for a program that the caller kills. */
export function spawnProgram(source: string, settings: ProgramSettings = {}): ChildProcessWithoutNullStreams {
  return spawn(process.execPath, argumentsOf(source, settings), optionsOf(settings.env));
}

/** Waits for the end of a process. @returns what it has written, and its exit code: null if it was killed. */
export async function finished(
  child: ChildProcess,
): Promise<{ readonly stdout: Buffer; readonly stderr: string; readonly code: number | null }> {
  const [stdout, stderr]: [Buffer[], Buffer[]] = [[], []];
  child.stdout?.on('data', (chunk: Buffer) => stdout.push(chunk));
  child.stderr?.on('data', (chunk: Buffer) => stderr.push(chunk));
  const [code] = (await once(child, 'close')) as [number | null];
  return { stdout: Buffer.concat(stdout), stderr: Buffer.concat(stderr).toString(), code };
}

/** Runs a file of tests in a vitest of its own, against the built package and with none of this project's settings. */
export function runTests(source: string): ProgramResult {
  mkdirSync(join(ROOT, 'reports'), { recursive: true });
  const folder = mkdtempSync(join(ROOT, 'reports', 'tests-'));
  try {
    writeFileSync(join(folder, 'vitest.config.mjs'), 'export default {};'); // or it takes ours, from the folder above
    writeFileSync(join(folder, 'snippet.test.mjs'), source);
    return runNode([join(ROOT, 'node_modules/vitest/vitest.mjs'), 'run', '--root', folder]);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

function argumentsOf(source: string, { type = 'module', flags = [] }: ProgramSettings): string[] {
  return [...flags, `--input-type=${type}`, '--eval', source];
}

function optionsOf(env: Readonly<Record<string, string>> = {}) {
  return {
    cwd: ROOT,
    env: { ...process.env, ...env, NO_COLOR: '1', FORCE_COLOR: undefined },
    timeout: MOST_MS,
  };
}

function runNode(args: string[], env?: Readonly<Record<string, string>>): ProgramResult {
  return resultOf(spawnSync(process.execPath, args, { ...optionsOf(env), encoding: 'utf8' }));
}

function resultOf({ stdout, stderr, status }: Omit<ProgramResult, 'lines'>): ProgramResult {
  return { stdout, stderr, status, lines: stdout.split('\n').filter((line) => line !== '') };
}
