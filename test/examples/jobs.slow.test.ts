import { execFile, spawn, type ChildProcessWithoutNullStreams } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { afterAll, afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { goodSample } from '../../examples/jobs/demo/sample-images.ts';
import { parseOptions } from '../../examples/jobs/options.ts';
import { widthOf } from './support.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const EXAMPLE = ['--import', './examples/request-deadlines/run-typescript.mjs', 'examples/jobs/main.ts'];

/** The temporary directory of the runs: what they leave there is seen. */
const directory = mkdtempSync(join(tmpdir(), 'jobs-test-'));
const ENV = { ...process.env, TMPDIR: directory };
afterAll(() => {
  rmSync(directory, { recursive: true });
});

interface ExampleRun {
  readonly code: number | string | null;
  readonly stdout: string;
  readonly stderr: string;
}

function runExample(...options: string[]): Promise<ExampleRun> {
  return new Promise((resolve) => {
    execFile(process.execPath, [...EXAMPLE, ...options], { cwd: ROOT, env: ENV }, (error, stdout, stderr) => {
      resolve({ code: error === null ? 0 : (error.code ?? null), stdout, stderr });
    });
  });
}

function startExample(...options: string[]): ChildProcessWithoutNullStreams {
  return spawn(process.execPath, [...EXAMPLE, ...options], { cwd: ROOT, env: ENV });
}

/** The number in a row of the table. */
function cell(stdout: string, label: string): number {
  const text = new RegExp(`│ ${label} +│ +([\\d,.-]+)`).exec(stdout)?.[1];
  return Number(text?.replaceAll(',', ''));
}

function left(): string[] {
  return readdirSync(directory).filter((name) => name.startsWith('escapement-jobs-'));
}

describe('the image jobs, run for real', () => {
  it('do a dozen images through refusals and broken ones, send digests, and clean up', async () => {
    const { code, stdout, stderr } = await runExample('--short');

    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout).toContain('Self-check passed');
    expect(widthOf(stdout)).toBeLessThanOrEqual(80);
    expect(stdout).not.toContain('\u001b');
    expect(stdout).toMatch(/to ada: \d images? .* ready/);
    expect(stdout).toMatch(/image [\da-f]{8}: done in .* at the \d(nd|rd|th) try/);
    expect(cell(stdout, 'images sent')).toBe(12);
    expect(cell(stdout, 'sizes made')).toBe(30);
    expect(cell(stdout, 'archived')).toBe(2);
    expect(cell(stdout, 'refused by the storage')).toBeGreaterThan(0);
    expect(cell(stdout, 'notifications')).toBe(10);
    expect(cell(stdout, 'clean-ups')).toBeGreaterThan(0);
    expect(left()).toEqual([]);
  });

  it.skipIf(process.platform === 'win32')('end at Ctrl-C with 130 and leave nothing', async () => {
    const example = startExample('--duration', '60');
    const closed = once(example, 'close');
    let stdout = '';
    for await (const line of createInterface(example.stdout)) {
      stdout += `${line}\n`;
      if (line.includes('send a burst')) example.kill('SIGINT');
    }

    expect(await closed).toEqual([130, null]);
    expect(stdout).toContain('interrupted');
    expect(left()).toEqual([]);
  });

  it.skipIf(process.platform === 'win32')('are a service for images of yours, until SIGTERM', async () => {
    const example = startExample('--directory', join(directory, 'images'), '--grace', '0.1');
    const closed = once(example, 'close');
    let stdout = '';
    for await (const line of createInterface(example.stdout)) {
      stdout += `${line}\n`;
      const url = /^The service listens: (.*)$/.exec(line)?.[1];
      if (url !== undefined) await sendImage(url);
      if (line.includes('to me: 1 image is ready, in 2 sizes')) example.kill('SIGTERM');
    }

    expect(await closed).toEqual([0, null]);
    expect(stdout).toMatch(/image [\da-f]{8}: done in .*[^]*stopping/);
    expect(readdirSync(join(directory, 'images', 'originals'))).toHaveLength(1);
    expect(readdirSync(join(directory, 'images', 'sizes'))).toHaveLength(2);
  });

  async function sendImage(url: string): Promise<void> {
    const { bytes: body } = await goodSample('image', 200, 100, 'jpeg');
    const response = await fetch(`${url}/images?width=50&width=20&notify=me`, { method: 'POST', body });
    expect(response.status).toBe(202);
  }
});

describe('the options of the image jobs', () => {
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
    ['--duration', '-1'],
    ['--workers', '0'],
    ['--port', '70000'],
    ['--max-megabytes', ''],
    ['--keep', 'forever'],
    ['--grace', '0'],
  ])('refuse %s %j and name both', (option, value) => {
    expect(parseOptions([option, value])).toBe(2);
    expect(printed).toContain(`option '${option} `);
    expect(printed).toContain(`argument '${value}' is invalid`);
  });

  it.each([
    [['--short', '--duration', '1'], "option '--short' cannot be used with option '--duration"],
    [['now'], 'too many arguments'],
  ])('refuse %j', (args, message) => {
    expect(parseOptions(args)).toBe(2);
    expect(printed).toContain(message);
  });

  it('are explained by --help', () => {
    expect(parseOptions(['--help'])).toBe(0);
    expect(widthOf(printed)).toBeLessThanOrEqual(80);
    for (const option of ['--directory', '--port', '--workers', '--keep', '--grace', '--duration', '--short'])
      expect(printed).toContain(option);
  });

  it('choose the mode', () => {
    expect(parseOptions(['--workers', '3'])).toEqual({
      mode: 'demo',
      port: 0,
      workers: 3,
      durationMs: 5_000,
    });
    expect(parseOptions(['--short', '--workers', '3'])).toMatchObject({ mode: 'demo', durationMs: 0 });
    expect(parseOptions(['--directory', directory, '--workers', '1', '--keep', '2', '--grace', '3'])).toEqual(
      {
        ...{ mode: 'serve', port: 0, workers: 1, directory },
        ...{ maxBytes: 10_000_000, keepMs: 7_200_000, graceMs: 3_000 },
      },
    );
  });
});
