import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { afterAll, afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { scrape, type Scrape } from '../../examples/controller/demo/scrape.ts';
import { parseOptions } from '../../examples/controller/options.ts';
import { widthOf } from './support.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const EXAMPLE = [
  '--import',
  './examples/request-deadlines/run-typescript.mjs',
  'examples/controller/main.ts',
];

/** The temporary directory of the runs: what they leave there is seen. */
const directory = mkdtempSync(join(tmpdir(), 'controller-test-'));
afterAll(() => {
  rmSync(directory, { recursive: true });
});

interface ExampleRun {
  readonly code: number | string | null;
  readonly stdout: string;
  readonly stderr: string;
}

function runExample(...options: string[]): Promise<ExampleRun> {
  const env = { ...process.env, TMPDIR: directory };
  return new Promise((resolve) => {
    execFile(process.execPath, [...EXAMPLE, ...options], { cwd: ROOT, env }, (error, stdout, stderr) => {
      resolve({ code: error === null ? 0 : (error.code ?? null), stdout, stderr });
    });
  });
}

/** The number in a row of the table. */
function cell(stdout: string, label: string): number {
  const text = new RegExp(`│ ${label} +│ +([\\d,.-]+)`).exec(stdout)?.[1];
  return Number(text?.replaceAll(',', ''));
}

describe.concurrent('the controller, run for real', () => {
  it('keeps every promise through bursts, broken files, moves and tampering, and cleans up', async () => {
    const { code, stdout, stderr } = await runExample('--duration', '1');

    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout).toContain('Self-check passed');
    expect(widthOf(stdout)).toBeLessThanOrEqual(80);
    expect(stdout).not.toContain('\u001b');
    expect(cell(stdout, 'events')).toBeGreaterThan(cell(stdout, 'adds to the queue'));
    expect(cell(stdout, 'with two workers')).toBe(0);
    expect(cell(stdout, 'given up')).toBeGreaterThanOrEqual(2);
    expect(cell(stdout, 'files compared')).toBeGreaterThan(10);
    expect(readdirSync(directory).filter((name) => name.startsWith('escapement-controller-'))).toEqual([]);
  });

  it.skipIf(process.platform === 'win32')(
    'watches a directory of yours, serves its metrics, and says at SIGTERM what is not rendered',
    async () => {
      const [source, output] = [join(directory, 'source'), join(directory, 'output')];
      mkdirSync(source);
      writeFileSync(join(source, 'good.json'), '{"port":80}');
      const options = ['--source', source, '--output', output, '--max-retries', '1', '--resync', '60'];
      const example = spawn(process.execPath, [...EXAMPLE, ...options], { cwd: ROOT });
      const closed = once(example, 'close');
      let stdout = '';
      let url = '';
      let scraped: Scrape = new Map();
      for await (const line of createInterface(example.stdout)) {
        stdout += `${line}\n`;
        url ||= /^Metrics: (.*)$/.exec(line)?.[1] ?? '';
        if (line.endsWith('written  good.json')) writeFileSync(join(source, 'bad.json'), '{"port":');
        if (scraped.size > 0 || !line.includes('dropped  bad.json')) continue;
        scraped = await scrape(url);
        example.kill('SIGTERM');
      }

      expect(await closed).toEqual([1, null]);
      expect(stdout).toMatch(/stopping[^]*Not rendered: bad\.json: .*JSON/);
      expect(readFileSync(join(output, 'good.conf'), 'utf8')).toContain('port = 80\n');
      expect(scraped.get('workqueue_adds_total')).toBeGreaterThanOrEqual(4);
      expect(scraped.get('workqueue_retries_total')).toBeGreaterThanOrEqual(2);
      expect(scraped.get('workqueue_depth')).toBeLessThanOrEqual(1);
      expect(scraped.get('controller_events_total')).toBeGreaterThan(0);
    },
  );
});

describe('the options of the controller', () => {
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
    ['--duration', '0'],
    ['--workers', '0'],
    ['--max-retries', '1.5'],
    ['--resync', ''],
    ['--port', '70000'],
    ['--source', join(ROOT, 'no-such-directory')],
  ])('refuse %s %j and name both', (option, value) => {
    expect(parseOptions([option, value])).toBe(2);
    expect(printed).toContain(`option '${option} `);
    expect(printed).toContain(`argument '${value}' is invalid`);
  });

  it.each([
    [['--source', directory], '--source and --output go together'],
    [['--output', directory], '--source and --output go together'],
    [['--source', directory, '--output', join(directory, 'out')], 'must not be inside each other'],
    [['--source', directory, '--output', directory], 'must not be inside each other'],
    [['--source', directory, '--output', tmpdir()], 'must not be inside each other'],
    [['now'], 'too many arguments'],
  ])('refuse %j', (args, message) => {
    expect(parseOptions(args)).toBe(2);
    expect(printed).toContain(message);
  });

  it('are explained by --help', () => {
    expect(parseOptions(['--help'])).toBe(0);
    expect(widthOf(printed)).toBeLessThanOrEqual(80);
    for (const option of ['--source', '--output', '--workers', '--max-retries', '--resync', '--port'])
      expect(printed).toContain(option);
    expect(printed.match(/to \d+\)\s+\(default:/g)).toHaveLength(5);
  });

  it('choose the mode', () => {
    expect(parseOptions(['--duration', '1.5'])).toEqual({ mode: 'demo', durationMs: 1_500, port: 0 });
    const output = `${directory}-output`;
    expect(parseOptions(['--source', directory, '--output', output, '--resync', '5'])).toEqual({
      mode: 'watch',
      sourceDirectory: directory,
      outputDirectory: output,
      workers: 4,
      maxRetries: 8,
      resyncMs: 5_000,
      port: 0,
    });
  });
});
