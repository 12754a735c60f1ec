import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const EXAMPLE = [
  '--import',
  './examples/request-deadlines/run-typescript.mjs',
  'examples/replicated-log/main.ts',
];

interface ExampleRun {
  readonly code: number | string | null;
  readonly stdout: string;
  readonly stderr: string;
}

function runExample(...options: string[]): Promise<ExampleRun> {
  return new Promise((resolve) => {
    execFile(process.execPath, [...EXAMPLE, ...options], { cwd: ROOT }, (error, stdout, stderr) => {
      resolve({ code: error === null ? 0 : (error.code ?? null), stdout, stderr });
    });
  });
}

/** The number in a row of the table. */
function cell(stdout: string, label: string): number {
  const text = new RegExp(`│ ${label} +│ +([\\d,.-]+)`).exec(stdout)?.[1];
  return Number(text?.replaceAll(',', ''));
}

/** Of every process that the output names. */
function pidsIn(stdout: string): number[] {
  return [...new Set([...stdout.matchAll(/\(pid (\d+)\)/g)].map(([, pid]) => Number(pid)))];
}

function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

describe.concurrent('the replicated log, run for real', () => {
  it('keeps every promise through the SIGKILL of a follower and its return', async () => {
    const { code, stdout, stderr } = await runExample('--duration', '2', '--rate', '150', '--consumers', '4');

    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout).toContain('Self-check passed');
    expect(stdout).toMatch(
      /in sync: leader[^]*follower-1 .*killed: SIGKILL[^]*session of follower-1 expired[^]*follower-1 started again[^]*in sync again/,
    );
    const produces = cell(stdout, 'produces');
    expect(produces).toBeGreaterThan(200);
    expect(cell(stdout, 'acknowledged') + cell(stdout, 'expired') + cell(stdout, 'refused')).toBe(produces);
    expect(cell(stdout, 'expired')).toBeGreaterThan(0);
    expect(cell(stdout, 'watched at the end')).toBe(0);
    expect(pidsIn(stdout)).toHaveLength(4);
    expect(pidsIn(stdout).filter(isRunning)).toEqual([]);
  });

  it.skipIf(process.platform === 'win32')('ends at Ctrl-C with 130 and leaves no process', async () => {
    const example = spawn(process.execPath, [...EXAMPLE, '--duration', '60'], { cwd: ROOT });
    const closed = once(example, 'close');
    let stdout = '';
    for await (const line of createInterface(example.stdout)) {
      stdout += `${line}\n`;
      // The first line of gauges: the traffic flows.
      if (/^ +\d\.\d s +3 /.test(line)) example.kill('SIGINT');
    }

    expect(await closed).toEqual([130, null]);
    expect(stdout).toContain('interrupted');
    expect(pidsIn(stdout)).toHaveLength(3);
    expect(pidsIn(stdout).filter(isRunning)).toEqual([]);
  });
});

describe.concurrent('a wrong option of the replicated log', () => {
  it.each([
    ['--rate', '-5'],
    ['--duration', '0'],
    ['--consumers', '1.5'],
    ['--partitions', 'many'],
  ])('%s %s ends it with 2 and names both', async (option, value) => {
    const { code, stdout, stderr } = await runExample(option, value);

    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(stderr).toContain(`option '${option} `);
    expect(stderr).toContain(`argument '${value}' is invalid`);
  });

  it('that it does not know ends it with 2', async () => {
    const { code, stderr } = await runExample('--replicas', '5');

    expect(code).toBe(2);
    expect(stderr).toContain("unknown option '--replicas'");
  });

  it('is none in --help, which explains each with its range and default', async () => {
    const { code, stdout } = await runExample('--help');

    expect(code).toBe(0);
    for (const option of ['--duration', '--rate', '--consumers', '--partitions']) {
      expect(stdout).toContain(option);
    }
    expect(stdout.match(/default:/g)).toHaveLength(4);
  });
});
