import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { parseOptions } from '../../examples/replicated-log/options.ts';
import { widthOf } from './support.ts';

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
  return [...new Set([...stdout.matchAll(/\(pid\s+(\d+)\)/g)].map(([, pid]) => Number(pid)))];
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
    const { code, stdout, stderr } = await runExample(
      '--duration',
      '1.2',
      '--rate',
      '150',
      '--consumers',
      '4',
    );

    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout).toContain('Self-check passed');
    expect(widthOf(stdout)).toBeLessThanOrEqual(80);
    expect(stdout).toMatch(
      /in sync: leader[^]*follower-1 .*killed: SIGKILL[^]*session of follower-1 expired[^]*follower-1 started again[^]*in sync again/,
    );
    const produces = cell(stdout, 'produces');
    expect(produces).toBeGreaterThan(100);
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

  it('ends with 1, and leaves no process, when the leader dies', async () => {
    const example = spawn(process.execPath, [...EXAMPLE, '--duration', '60'], { cwd: ROOT });
    const closed = once(example, 'close');
    const stderr = text(example.stderr);
    let stdout = '';
    for await (const line of createInterface(example.stdout)) {
      stdout += `${line}\n`;
      const leader = /leader \(pid\s+(\d+)\)/.exec(line)?.[1];
      if (leader !== undefined) process.kill(Number(leader), 'SIGKILL');
    }

    expect(await closed).toEqual([1, null]);
    expect(await stderr).toBe('error: the leader ended meanwhile, with SIGKILL\n');
    expect(pidsIn(stdout)).toHaveLength(3);
    expect(pidsIn(stdout).filter(isRunning)).toEqual([]);
  });

  it('ends with 2 and an explanation when an option is wrong', async () => {
    const { code, stdout, stderr } = await runExample('--rate', '-5');

    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(stderr).toContain("option '--rate <number>' argument '-5' is invalid");
  });
});

describe('the options of the replicated log', () => {
  let printed = '';
  beforeEach(() => {
    printed = '';
    const print = (text: string | Uint8Array): boolean => {
      printed += String(text);
      return true;
    };
    vi.spyOn(process.stdout, 'write').mockImplementation(print);
    vi.spyOn(process.stderr, 'write').mockImplementation(print);
  });
  afterEach(() => {
    vi.restoreAllMocks();
  });

  it.each([
    ['--rate', '1001'],
    ['--duration', '0'],
    ['--duration', ''],
    ['--consumers', '1.5'],
    ['--partitions', 'many'],
  ])('refuse %s %j and name both', (option, value) => {
    expect(parseOptions([option, value])).toBe(2);
    expect(printed).toContain(`option '${option} `);
    expect(printed).toContain(`argument '${value}' is invalid`);
  });

  it('refuse what they do not know', () => {
    expect(parseOptions(['--replicas', '5'])).toBe(2);
    expect(printed).toContain("unknown option '--replicas'");
    expect(parseOptions(['now'])).toBe(2);
  });

  it('are explained by --help, each with its range and default', () => {
    expect(parseOptions(['--help'])).toBe(0);
    expect(widthOf(printed)).toBeLessThanOrEqual(80);
    for (const option of ['--duration', '--rate', '--consumers', '--partitions']) {
      expect(printed).toContain(option);
    }
    expect(printed.match(/to \d+\)\s+\(default:/g)).toHaveLength(4);
  });

  it('are milliseconds and numbers afterwards', () => {
    expect(parseOptions(['--duration', '1.5', '--partitions', '5'])).toEqual({
      durationMs: 1_500,
      ratePerSecond: 300,
      consumers: 6,
      partitions: 5,
    });
  });
});
