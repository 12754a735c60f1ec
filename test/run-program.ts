import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('..', import.meta.url));

/** How a program ended. */
export interface ProgramResult {
  readonly stdout: string;
  readonly stderr: string;
  /** The lines of `stdout` that are not empty. */
  readonly lines: string[];
  /** The exit code; null if it had to be killed. */
  readonly status: number | null;
}

/** How a program is run. */
export interface ProgramSettings {
  readonly type?: 'module' | 'commonjs';
  readonly flags?: readonly string[];
  /** Besides the environment of the tests. */
  readonly env?: Readonly<Record<string, string>>;
}

/** Longest run of a program, in milliseconds: past it, it hangs and is killed. */
const MOST_MS = 20_000;

/**
 * Runs a program in a Node process of its own, against the built package, as its users do:
 * `import … from 'escapement'` resolves through package.json.
 */
export function runProgram(
  source: string,
  { type = 'module', flags = [], env = {} }: ProgramSettings = {},
): ProgramResult {
  return runNode([...flags, `--input-type=${type}`, '--eval', source], env);
}

/** Runs a file of tests in a vitest of its own, against the built package and with none of this project's settings. */
export function runTests(source: string): ProgramResult {
  mkdirSync(join(ROOT, 'reports'), { recursive: true });
  const folder = mkdtempSync(join(ROOT, 'reports', 'tests-'));
  try {
    writeFileSync(join(folder, 'vitest.config.mjs'), 'export default {};'); // or it takes ours, from the folder above
    writeFileSync(join(folder, 'snippet.test.mjs'), source);
    return runNode([join(ROOT, 'node_modules/vitest/vitest.mjs'), 'run', '--root', folder]);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

function runNode(args: string[], env: Readonly<Record<string, string>> = {}): ProgramResult {
  const { stdout, stderr, status } = spawnSync(process.execPath, args, {
    cwd: ROOT,
    encoding: 'utf8',
    env: { ...process.env, ...env, NO_COLOR: '1', FORCE_COLOR: undefined },
    timeout: MOST_MS,
  });
  const lines = stdout.split('\n').filter((line) => line !== '');
  return { stdout, stderr, lines, status };
}
