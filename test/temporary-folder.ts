import { chmodSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

/** Caches that belong to no test: tsx's and Node's. */
const CACHE = /^(tsx-\d+|node-compile-cache)$/;

/** A server that a test has left running is ended by a process of its own, which removes its folder a moment later. */
const LONGEST_WAIT_MS = 5_000;
const POLL_MS = 50;

let folder: string | undefined;

/**
 * Gives the run a temporary folder of its own. Only on Linux: elsewhere the path of a socket in it would be too long.
 */
export function setup(): void {
  if (process.platform !== 'linux') return;
  folder = mkdtempSync(join(tmpdir(), 'esc-'));
  chmodSync(folder, 0o755); // some tests are another user
  process.env['TMPDIR'] = folder;
}

/** Removes the folder, and fails the run if a test has left something in it. */
export async function teardown(): Promise<void> {
  if (folder === undefined) return;
  const endMs = performance.now() + LONGEST_WAIT_MS;
  while (leftIn(folder).length > 0 && performance.now() < endMs) await sleep(POLL_MS);
  const left = leftIn(folder);
  rmSync(folder, { recursive: true, force: true });
  if (left.length === 0) return;
  console.error(`\nThe tests have left behind in their temporary folder: ${left.join(', ')}`);
  process.exitCode = 1;
}

function leftIn(path: string): string[] {
  return readdirSync(path).filter((name) => !CACHE.test(name));
}
