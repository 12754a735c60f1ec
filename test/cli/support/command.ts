import { spawn, type ChildProcess } from 'node:child_process';
import { fileURLToPath } from 'node:url';

/** The built command. */
export const COMMAND = fileURLToPath(new URL('../../../dist/cli.js', import.meta.url));

export interface CommandResult {
  readonly stdout: Buffer;
  readonly stderr: string;
  /** Null if it was killed. */
  readonly code: number | null;
}

/** Starts `escapement …`, with nothing of a terminal about it. */
export function startCommand(
  words: readonly string[],
  before: readonly string[] = [],
  more: Readonly<Record<string, string>> = {},
): ChildProcess {
  const env = { ...process.env, NO_COLOR: undefined, FORCE_COLOR: undefined, REDIS_URL: undefined, ...more };
  const [program = '', ...args] = [...before, process.execPath, COMMAND, ...words];
  return spawn(program, args, { env, stdio: ['ignore', 'pipe', 'pipe'] });
}

/** Starts another copy of the command. */
export function startCopy(command: string, words: readonly string[]): ChildProcess {
  const env = { ...process.env, REDIS_URL: undefined };
  return spawn(process.execPath, [command, ...words], { env, stdio: ['ignore', 'pipe', 'pipe'] });
}

/** The same for a process that permissions hold for, which they do not for root. */
export function startBound(words: readonly string[]): ChildProcess {
  const isRoot = process.getuid?.() === 0;
  return startCommand(words, isRoot ? ['setpriv', '--bounding-set', '-dac_override,-dac_read_search'] : []);
}

export function finished(child: ChildProcess): Promise<CommandResult> {
  const stdout: Buffer[] = [];
  const stderr: Buffer[] = [];
  child.stdout?.on('data', (chunk: Buffer) => stdout.push(chunk));
  child.stderr?.on('data', (chunk: Buffer) => stderr.push(chunk));
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (code) => {
      resolve({ stdout: Buffer.concat(stdout), stderr: Buffer.concat(stderr).toString(), code });
    });
  });
}

/** Runs `escapement diskqueue …`. */
export async function diskQueue(
  ...words: string[]
): Promise<{ stdout: string; stderr: string; code: number | null }> {
  const { stdout, stderr, code } = await finished(startCommand(['diskqueue', ...words]));
  return { stdout: stdout.toString(), stderr, code };
}

/** What the commands print as JSON, as far as tests take it apart. */
export interface JsonResult {
  readonly queues: {
    readonly notes?: string[];
    readonly steps?: { action: string; file: string; keptAs?: string }[];
  }[];
}

/** The same with `--json`: what it printed, and its exit code. */
export async function diskQueueJson(
  ...words: string[]
): Promise<{ result: JsonResult; code: number | null }> {
  const { stdout, stderr, code } = await diskQueue(...words, '--json');
  if (stderr !== '') throw new Error(stderr);
  return { result: JSON.parse(stdout) as JsonResult, code };
}
