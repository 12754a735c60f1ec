import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { installGoProgram } from '../../support/install-go-program.ts';

const run = promisify(execFile);

const MODULE = 'github.com/hibiken/asynq/tools';

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
  const program = await installGoProgram(MODULE, `${MODULE}/asynq`, 'latest');
  return program === undefined ? undefined : commandLineOf(program.file, program.remove);
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
