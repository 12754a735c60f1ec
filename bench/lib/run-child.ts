/** Memory is measured in a process of its own, which has done nothing else. */
import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

/** Runs a program in the same way as this process runs. @returns what it printed, as JSON. */
export async function runChild(program: URL, ...words: readonly string[]): Promise<Record<string, number>> {
  const path = fileURLToPath(program);
  const { stdout } = await promisify(execFile)(process.execPath, [...process.execArgv, path, ...words]);
  return JSON.parse(stdout) as Record<string, number>;
}
