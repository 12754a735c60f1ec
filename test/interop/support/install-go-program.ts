import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);

const INSTALL_MS = 180_000;

/** A program that Go has installed for the tests. */
export interface GoProgram {
  readonly file: string;
  readonly remove: () => void;
}

/**
 * Installs a program of a module.
 *
 * @param version - `latest`, or one that is released.
 * @returns undefined where Go knows no such version of the module, or may not fetch it: that is printed.
 * @throws Error - it could not be built.
 */
export async function installGoProgram(
  module: string,
  path: string,
  version: string,
): Promise<GoProgram | undefined> {
  const folder = mkdtempSync(join(tmpdir(), 'go-program-'));
  const remove = (): void => {
    rmSync(folder, { recursive: true, force: true });
  };
  try {
    await run('go', ['list', '-m', `${module}@${version}`], { cwd: folder, timeout: INSTALL_MS });
  } catch (error) {
    remove();
    console.warn(`${path} is not tested: Go knows no ${module}@${version}. ${String(error)}`);
    return undefined;
  }
  try {
    const env = { ...process.env, GOBIN: folder };
    await run('go', ['install', `${path}@${version}`], { env, timeout: INSTALL_MS });
    return { file: join(folder, basename(path)), remove };
  } catch (error) {
    remove();
    throw error;
  }
}
