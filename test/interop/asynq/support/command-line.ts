import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);

const MODULE = 'github.com/hibiken/asynq/tools';
const INSTALL_MS = 180_000;

/** asynq's own command line. */
export interface CommandLine {
  /** What it prints. @throws Error - it has ended with an error. */
  run(...args: string[]): Promise<string>;
  remove(): void;
}

/**
 * The program that `ASYNQ_CLI` names, or else what Go installs. The module has no released version: only where Go may ask its
 * repository, or a proxy that has, can it be had.
 *
 * @returns undefined where Go knows no version of it, which is said aloud.
 * @throws Error - it could not be built.
 */
export async function findCommandLine(): Promise<CommandLine | undefined> {
  const given = process.env['ASYNQ_CLI'] ?? '';
  if (given !== '') return commandLineOf(given, () => undefined);
  const folder = mkdtempSync(join(tmpdir(), 'asynq-cli-'));
  const remove = (): void => {
    rmSync(folder, { recursive: true, force: true });
  };
  try {
    await run('go', ['list', '-m', `${MODULE}@latest`], { cwd: folder, timeout: INSTALL_MS });
  } catch (error) {
    remove();
    console.warn(`asynq's command line is not tested: Go knows no version of ${MODULE}. ${String(error)}`);
    return undefined;
  }
  try {
    const env = { ...process.env, GOBIN: folder };
    await run('go', ['install', `${MODULE}/asynq@latest`], { env, timeout: INSTALL_MS });
    return commandLineOf(join(folder, 'asynq'), remove);
  } catch (error) {
    remove();
    throw error;
  }
}

function commandLineOf(program: string, remove: () => void): CommandLine {
  return {
    run: async (...args) => {
      const { stdout } = await run(program, args, { timeout: 30_000 });
      return stdout;
    },
    remove,
  };
}
