import { spawn } from 'node:child_process';
import { accessSync, constants, statSync } from 'node:fs';
import { delimiter, join } from 'node:path';

/** What of a machine matters for finding Redis on it. */
export interface System {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly isRoot: boolean;
  /** Runs a command to its end. @returns whether it went well. */
  readonly run: (program: string, args: readonly string[]) => Promise<boolean>;
  /** Prints the reason of a long wait. */
  readonly say: (message: string) => void;
}

/** The machine that we run on. */
export const thisSystem: System = {
  env: process.env,
  isRoot: process.getuid?.() === 0,
  run: (program, args) =>
    new Promise((resolve) => {
      // Installers talk a lot: it belongs where it does not mix with the report of the tests.
      const child = spawn(program, args, { stdio: ['ignore', process.stderr, process.stderr] });
      child.once('error', () => resolve(false));
      child.once('exit', (code) => resolve(code === 0));
    }),
  say: (message) => {
    process.stderr.write(`${message}\n`);
  },
};

/** Where a program is, as a shell would find it. */
export function programOnPath(program: string, { env }: Pick<System, 'env'>): string | undefined {
  const folders = (env['PATH'] ?? '').split(delimiter).filter((folder) => folder !== '');
  return folders.map((folder) => join(folder, program)).find(isProgram);
}

function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch {
    return false;
  }
}
