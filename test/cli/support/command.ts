import { spawn, type ChildProcess } from 'node:child_process';
import { chmodSync, cpSync, lchownSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { addDiskQueue } from '../../../src/cli/diskqueue/diskqueue.ts';
import { folderOfTest } from '../../folder.ts';
import { finished } from '../../run-program.ts';
import { runPart, type Result } from '../tasks/support/tasks-command.ts';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));

/** The built command. */
export const COMMAND = join(ROOT, 'dist/cli.js');

/** Starts `escapement …`, with nothing of a terminal about it. */
export function startCommand(
  words: readonly string[],
  more: Readonly<Record<string, string>> = {},
): ChildProcess {
  const env = { ...process.env, NO_COLOR: undefined, FORCE_COLOR: undefined, REDIS_URL: undefined, ...more };
  return spawn(process.execPath, [COMMAND, ...words], { env, stdio: ['ignore', 'pipe', 'pipe'] });
}

/** Waits for the end of a command, and reads what it has printed as text. */
export async function endOf(child: ChildProcess): Promise<Omit<Result, 'code'> & { code: number | null }> {
  const { stdout, ...rest } = await finished(child);
  return { stdout: stdout.toString(), ...rest };
}

/** Starts another copy of the command. */
export function startCopy(
  command: string,
  words: readonly string[],
  flags: readonly string[] = [],
): ChildProcess {
  const env = { ...process.env, REDIS_URL: undefined };
  return spawn(process.execPath, [...flags, command, ...words], { env, stdio: ['ignore', 'pipe', 'pipe'] });
}

const NOBODY = 65_534;

/** Makes Node another user before it loads a program. The process begins as root, whose Node others may not be able to run. */
const AS_NOBODY = `data:text/javascript,process.setgroups([]);process.setgid(${NOBODY});process.setuid(${NOBODY})`;

/** Starts the command for a user that permissions hold for, which they do not for root. The folder is that user's. */
export function startBound(words: readonly string[], folder: string): ChildProcess {
  if (process.getuid?.() !== 0) return startCommand([...words, folder]);
  const home = folderOfTest();
  for (const file of ['package.json', 'dist/cli.js']) cpSync(join(ROOT, file), join(home, file));
  chmodSync(home, 0o755);
  for (const file of ['.', ...readdirSync(folder)]) lchownSync(join(folder, file), NOBODY, NOBODY);
  return startCopy(join(home, 'dist/cli.js'), [...words, folder], ['--import', AS_NOBODY]);
}

/** Runs `escapement diskqueue …` in this process. */
export function diskQueue(...words: string[]): Promise<Result> {
  return runPart(addDiskQueue, ['diskqueue', ...words]);
}

/** What the commands print as JSON, as far as tests take it apart. */
export interface JsonResult {
  readonly queues: {
    readonly notes?: string[];
    readonly steps?: { action: string; file: string; keptAs?: string }[];
  }[];
}

/** The same with `--json`: what it printed, and its exit code. */
export async function diskQueueJson(...words: string[]): Promise<{ result: JsonResult; code: number }> {
  const { stdout, stderr, code } = await diskQueue(...words, '--json');
  if (stderr !== '') throw new Error(stderr);
  return { result: JSON.parse(stdout) as JsonResult, code };
}
