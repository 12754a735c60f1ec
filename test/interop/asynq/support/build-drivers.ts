import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { TestProject } from 'vitest/node';
import { GO_VERSIONS, type GoVersion } from './go-versions.ts';

declare module 'vitest' {
  interface ProvidedContext {
    /** The programs of driver/. */
    asynqDrivers: Readonly<Record<GoVersion, string>>;
  }
}

const SOURCE = fileURLToPath(new URL('../driver', import.meta.url));

const FLAGS: Readonly<Record<GoVersion, readonly string[]>> = {
  '0.25.1': [],
  '0.26.0': ['-modfile=go-0.26.mod', '-tags=asynq026'],
};

/**
 * Builds the driver with each version of asynq, once for all files. Go fetches what it needs.
 *
 * @throws Error - there is no Go, or it could not fetch or build it; it has said why.
 */
export function setup(project: TestProject): () => void {
  const folder = mkdtempSync(join(tmpdir(), 'asynq-driver-'));
  const remove = (): void => {
    rmSync(folder, { recursive: true, force: true });
  };
  try {
    const programs = GO_VERSIONS.map((version) => [version, build(version, folder)] as const);
    project.provide('asynqDrivers', Object.fromEntries(programs) as Record<GoVersion, string>);
    return remove;
  } catch (error) {
    remove();
    throw error;
  }
}

function build(version: GoVersion, folder: string): string {
  const program = join(folder, `driver-${version}`);
  execFileSync('go', ['build', ...FLAGS[version], '-o', program, '.'], {
    cwd: SOURCE,
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  return program;
}
