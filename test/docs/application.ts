import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { dirname, join } from 'node:path';
import { onTestFinished } from 'vitest';
import { finished } from '../run-program.ts';
import { until } from '../until.ts';

const ROOT = join(import.meta.dirname, '../..');

/** Longest run of a program, in milliseconds, on a busy machine: past it, it hangs and is killed. */
const MOST_MS = 60_000;

/** A program whose files a page shows, in a process of its own. */
export interface Application {
  readonly process: ChildProcess;
  /** What it has written, and its exit code, when it has ended. */
  readonly ended: ReturnType<typeof finished>;
}

/**
 * Runs a command in a folder with some files, by their paths in it. They import the built package, and the packages of
 * test/dashboard. Ends with the test.
 */
export function startApplication(
  files: Readonly<Record<string, string>>,
  [program, ...words]: readonly [string, ...string[]],
  env: Readonly<Record<string, string>> = {},
): Application {
  mkdirSync(join(ROOT, 'reports'), { recursive: true });
  const folder = mkdtempSync(join(ROOT, 'reports', 'application-')); // inside, 'escapement' is this package
  symlinkSync(join(ROOT, 'test/dashboard/node_modules'), join(folder, 'node_modules'), 'junction');
  for (const [path, source] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), source);
  }
  const child = spawn(program, words, { cwd: folder, env: { ...process.env, ...env }, timeout: MOST_MS });
  const ended = finished(child);
  onTestFinished(async () => {
    child.kill('SIGKILL');
    await ended;
    rmSync(folder, { recursive: true });
  });
  return { process: child, ended };
}

/** Waits until a program listens. @throws Error - with its output, if it has ended. */
export async function listens(port: number, { process: child, ended }: Application): Promise<void> {
  await until(`the program listens on ${port}`, async () => {
    if (child.exitCode !== null) return true;
    const socket = connect(port, '127.0.0.1');
    await once(socket, 'connect');
    return socket.destroy().destroyed;
  });
  if (child.exitCode !== null) throw new Error(`the program has ended: ${(await ended).stderr}`);
}
