import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, describe, expect, it } from 'vitest';
import { latenessChart, pendingChart } from '../../examples/request-deadlines/html/report-charts.ts';
import { widthOf } from './support.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const DEMO = [
  '--import',
  './examples/request-deadlines/run-typescript.mjs',
  'examples/request-deadlines/main.ts',
];
const SMALL = ['--rate', '400', '--timeout-ms', '200', '--connections', '200'];

const directory = mkdtempSync(join(tmpdir(), 'request-deadlines-'));
afterAll(() => {
  rmSync(directory, { recursive: true });
});

interface DemoRun {
  readonly code: number | string | null;
  readonly stdout: string;
  readonly stderr: string;
}

function runDemo(...options: string[]): Promise<DemoRun> {
  return new Promise((resolve) => {
    execFile(process.execPath, [...DEMO, ...options], { cwd: ROOT }, (error, stdout, stderr) => {
      resolve({ code: error === null ? 0 : (error.code ?? null), stdout, stderr });
    });
  });
}

/** The number in a row of the table. */
function cell(stdout: string, label: string): number {
  const text = new RegExp(`│ ${label} +│ +([\\d,.-]+)`).exec(stdout)?.[1];
  return Number(text?.replaceAll(',', ''));
}

function expectWheels(stdout: string): void {
  expect(stdout).toMatch(/level 1: 64 × 1 ms[^]*▕[·▁▂▃▄▅▆▇█ ]{64}▏[^]*▲/);
}

/** The wheels, the lateness and what was pending; and nothing to fetch: only references within the page. */
function expectSelfContained(report: string): void {
  expect(report.match(/<svg/g)).toHaveLength(3);
  expect(report).not.toMatch(/<script|<link|src=|url\((?!#)/);
}

describe('the demo, run for real', () => {
  it('answers every request or times it out, no timeout early, and reports it', async () => {
    const html = join(directory, 'new', 'report.html');
    const { code, stdout, stderr } = await runDemo(...SMALL, '--duration', '1', '--html', html);

    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    const requests = cell(stdout, 'requests');
    expect(requests).toBeGreaterThan(200);
    expect(cell(stdout, 'answered in time') + cell(stdout, 'timed out')).toBe(requests);
    expect(cell(stdout, 'timed out')).toBeGreaterThan(0);
    expect(cell(stdout, 'timeouts too early')).toBe(0);
    expect(cell(stdout, 'timeout lateness p50')).toBeGreaterThanOrEqual(0);
    expect(cell(stdout, 'host wake-ups')).toBeGreaterThan(0);
    expect(stdout).toContain('Self-check passed');
    expect(widthOf(stdout)).toBeLessThanOrEqual(80);
    expectWheels(stdout);
    expectSelfContained(readFileSync(html, 'utf8'));
  });

  it.skipIf(process.platform === 'win32')('ends at Ctrl-C with what it has', async () => {
    const demo = spawn(process.execPath, [...DEMO, ...SMALL, '--duration', '60', '--no-html'], { cwd: ROOT });
    let stdout = '';
    demo.stdout.on('data', (chunk: Buffer) => {
      stdout += chunk.toString();
    });
    const closed = once(demo, 'close');
    await once(demo.stdout, 'data');
    setTimeout(() => demo.kill('SIGINT'), 1_000);

    expect(await closed).toEqual([130, null]);
    const accounted = ['answered in time', 'timed out'].map((label) => cell(stdout, label));
    const abandoned = stdout.includes('abandoned') ? cell(stdout, 'abandoned') : 0;
    expect(accounted.reduce((sum, count) => sum + count, abandoned)).toBe(cell(stdout, 'requests'));
  });
});

describe.concurrent('a wrong option of the demo', () => {
  it.each([
    ['--rate', '-5'],
    ['--duration', '0'],
    ['--timeout-ms', 'NaN'],
    ['--connections', '1000000'],
  ])('%s %s ends it with 2 and names both', async (option, value) => {
    const { code, stdout, stderr } = await runDemo(option, value);

    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(stderr).toContain(`option '${option} `);
    expect(stderr).toContain(`argument '${value}' is invalid`);
  });

  it('that it does not know ends it with 2', async () => {
    const { code, stderr } = await runDemo('--reqests', '5');

    expect(code).toBe(2);
    expect(stderr).toContain("unknown option '--reqests'");
  });
});

/** The texts of a chart, in the order of its axes. */
function textsOf(chart: string): string[] {
  return [...chart.matchAll(/<text[^>]*>([^<]*)</g)].map(([, text = '']) => text);
}

describe('a chart of the report', () => {
  it('has round numbers on the axis of time, whenever the last sample was taken', () => {
    const samples = [50, 6_740].map((atMs) => ({ atMs, requests: 700, timers: 1_400 }));
    const texts = textsOf(pendingChart(samples));

    expect(texts.slice(0, texts.indexOf('seconds since the first request'))).toEqual('01234567'.split(''));
    expect(texts).toEqual(expect.arrayContaining(['1,000', '1,400']));
  });

  it('has round numbers on the axes of lateness, and draws a run without timeouts', () => {
    const ofRun = textsOf(latenessChart(Float64Array.from({ length: 1_000 }, (_, index) => index / 27)));

    expect(ofRun).toEqual(expect.arrayContaining(['0', '10', '20', '40', '100', '%']));
    expect(latenessChart(new Float64Array())).not.toContain('NaN');
  });
});

describe('--help of the demo', () => {
  it('explains every option with its range and default', async () => {
    const { code, stdout } = await runDemo('--help');

    expect(code).toBe(0);
    expect(widthOf(stdout)).toBeLessThanOrEqual(80);
    for (const option of ['--duration', '--rate', '--timeout-ms', '--connections', '--html', '--no-html']) {
      expect(stdout).toContain(option);
    }
    expect(stdout.match(/default:/g)).toHaveLength(5);
  });
});
