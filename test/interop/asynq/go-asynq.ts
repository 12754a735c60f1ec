import { execFile, execFileSync } from 'node:child_process';
import { cpSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const DRIVER = fileURLToPath(new URL('driver', import.meta.url));
const run = promisify(execFile);

/** The real asynq, asked through `driver/main.go`. */
export interface GoAsynq {
  /** What it prints, from JSON. @throws Error - with what it said on its way out. */
  ask(verb: 'enqueue' | 'inspect' | 'serve', ...args: string[]): Promise<Record<string, unknown>>;
  remove(): void;
}

/** Builds the driver in a folder of its own. Go's cache makes the second time quick. */
export function buildGoAsynq(): GoAsynq {
  const folder = mkdtempSync(join(tmpdir(), 'asynq-driver-'));
  cpSync(DRIVER, folder, { recursive: true });
  execFileSync('go', ['build', '-o', 'driver', '.'], { cwd: folder, stdio: ['ignore', 'ignore', 'inherit'] });
  return {
    ask: async (verb, ...args) => {
      const { stdout } = await run(join(folder, 'driver'), [verb, ...args], { timeout: 30_000 });
      return JSON.parse(stdout) as Record<string, unknown>;
    },
    remove: () => {
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
