import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('..', import.meta.url));

/** How a program ended. */
export interface ProgramResult {
  readonly stdout: string;
  readonly stderr: string;
  /** The exit code; null if it had to be killed. */
  readonly status: number | null;
}

/** Longest run of a program, in milliseconds: past it, it hangs and is killed. */
const MOST_MS = 20_000;

/**
 * Runs a program in a Node process of its own, against the built package, as its users do:
 * `import … from 'escapement'` resolves through package.json.
 */
export function runProgram(
  source: string,
  { type = 'module', flags = [] }: { type?: 'module' | 'commonjs'; flags?: string[] } = {},
): ProgramResult {
  const args = [...flags, `--input-type=${type}`, '--eval', source];
  const { stdout, stderr, status } = spawnSync(process.execPath, args, {
    cwd: ROOT,
    encoding: 'utf8',
    timeout: MOST_MS,
  });
  return { stdout, stderr, status };
}
