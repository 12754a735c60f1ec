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

/** Longest run of a program, in milliseconds, on a busy machine: past it, it hangs and is killed. */
const MOST_MS = 60_000;

/**
 * Runs a program in a Node process of its own, against the built package, as its users do:
 * `import … from 'escapement'` resolves through package.json.
 */
export function runProgram(source: string, settings: ProgramSettings = {}): ProgramResult {
  return runNode(argumentsOf(source, settings), settings.env);
}

/** The same without blocking, so that programs that mostly wait can run at the same time. */
export async function startProgram(source: string, settings: ProgramSettings = {}): Promise<ProgramResult> {
  const options = { ...optionsOf(settings.env), timeout: MOST_MS };
  const { stdout, stderr, code } = await finished(
    spawn(process.execPath, argumentsOf(source, settings), options),
  );
  return resultOf({ stdout: stdout.toString(), stderr, status: code });
}

/** The same for a program that the caller kills. */
export function spawnProgram(source: string, settings: ProgramSettings = {}): ChildProcessWithoutNullStreams {
  return spawnNode(argumentsOf(source, settings), settings.env);
}

/** Runs Node with such arguments to its end: a program in TypeScript behind `--import tsx`. */
export function runNode(args: readonly string[], env?: Readonly<Record<string, string>>): ProgramResult {
  const options = { ...optionsOf(env), encoding: 'utf8', timeout: MOST_MS } as const;
  return resultOf(spawnSync(process.execPath, args, options));
}

/** The same without blocking, for a program that the caller kills: a bundle. */
export function spawnNode(
  args: readonly string[],
  env?: Readonly<Record<string, string>>,
): ChildProcessWithoutNullStreams {
  return spawn(process.execPath, args, optionsOf(env));
}

/** Runs Node with such arguments until it is killed, some time after it has printed a word. @returns the whole lines that it has printed. */
export async function runUntilKilled(
  args: readonly string[],
  { word = '', afterMs }: { readonly word?: string; readonly afterMs: number },
): Promise<string[]> {
  const child = spawnNode(args);
  let output = '';
  let isDoomed = false;
  child.stdout.on('data', (part: Buffer) => {
    output += part.toString();
    if (isDoomed || !output.includes(word)) return;
    isDoomed = true;
    setTimeout(() => child.kill('SIGKILL'), afterMs);
  });
  const { stderr } = await finished(child);
  if (child.signalCode !== 'SIGKILL')
    throw new Error(`the program has ended by itself: ${output.slice(-500)}${stderr}`);
  return output.split('\n').slice(0, -1);
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
  };
}

function resultOf({ stdout, stderr, status }: Omit<ProgramResult, 'lines'>): ProgramResult {
  return { stdout, stderr, status, lines: stdout.split('\n').filter((line) => line !== '') };
}
