import { execFile, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const DRIVER = fileURLToPath(new URL('driver', import.meta.url));
const run = promisify(execFile);

type Verb = 'enqueue' | 'inspect' | 'serve' | 'servers' | 'entries' | 'events';

/** The real asynq, asked through `driver/main.go`. */
export interface GoAsynq {
  /** What it prints, from JSON. @throws Error - with what it said on its way out. */
  ask<T = Record<string, unknown>>(verb: Verb, ...args: string[]): Promise<T>;
  /** Works on tasks of a queue that do not end, and schedules. @returns what kills it. */
  hold(address: string, queue: string): () => Promise<void>;
  remove(): void;
}

/** Builds the driver in a folder of its own. Go's cache makes the second time quick. */
export function buildGoAsynq(): GoAsynq {
  const folder = mkdtempSync(join(tmpdir(), 'asynq-driver-'));
  cpSync(DRIVER, folder, { recursive: true });
  execFileSync('go', ['build', '-o', 'driver', '.'], { cwd: folder, stdio: ['ignore', 'ignore', 'inherit'] });
  return {
    ask: async <T>(verb: Verb, ...args: string[]) => {
      const { stdout } = await run(join(folder, 'driver'), [verb, ...args], { timeout: 30_000 });
      return JSON.parse(stdout) as T;
    },
    hold: (address, queue) => {
      const child = spawn(join(folder, 'driver'), ['hold', address, queue], { stdio: 'inherit' });
      const ended = once(child, 'exit');
      return async () => {
        child.kill('SIGKILL');
        await ended;
      };
    },
    remove: () => {
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
