import { execFile, spawn, type ChildProcessWithoutNullStreams } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { isRunning } from '../../examples/spool/demo/child.ts';
import { widthOf } from './support.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const EXAMPLE = ['--import', './examples/request-deadlines/run-typescript.mjs', 'examples/spool/main.ts'];

/** The temporary directory of the runs: what they leave there is seen. */
const directory = mkdtempSync(join(tmpdir(), 'spool-test-'));
const ENV = { ...process.env, TMPDIR: directory };
let server: Server;
/** By path: the lines that were posted there. One whose path begins with `/busy` is answered 503. */
const collected = new Map<string, string[]>();
beforeAll(async () => {
  server = createServer((request, response) => {
    const { url = '' } = request;
    void text(request).then((body) => {
      collected.set(url, [...(collected.get(url) ?? []), ...body.split('\n').slice(0, -1)]);
      response.writeHead(url.startsWith('/busy') ? 503 : 204).end();
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
});
afterAll(() => {
  server.close();
  rmSync(directory, { recursive: true });
});

interface ExampleRun {
  readonly code: number | string | null;
  readonly stdout: string;
  readonly stderr: string;
}

function run(command: string, args: readonly string[]): Promise<ExampleRun> {
  return new Promise((resolve) => {
    execFile(command, args, { cwd: ROOT, env: ENV }, (error, stdout, stderr) => {
      resolve({ code: error === null ? 0 : (error.code ?? null), stdout, stderr });
    });
  });
}

function shipping(spool: string, path: string, ...options: readonly string[]): string[] {
  const { port } = server.address() as AddressInfo;
  const url = `http://127.0.0.1:${port}/${path}`;
  return [...EXAMPLE, '--spool', join(directory, spool), '--forward', url, ...options];
}

function ship(spool: string, path: string, ...options: readonly string[]): ChildProcessWithoutNullStreams {
  return spawn(process.execPath, shipping(spool, path, ...options), { cwd: ROOT });
}

/** Resolves when the shipper has confirmed so many lines. */
async function confirmed({ stdout }: ChildProcessWithoutNullStreams, count: number): Promise<void> {
  for await (const line of createInterface(stdout)) if (Number(line) >= count) return;
}

function numbered(first: number, last: number): string[] {
  return Array.from({ length: last - first + 1 }, (_, index) => `line ${first + index}`);
}

/** The number in a row of the table. */
function cell(stdout: string, label: string): number {
  const number = new RegExp(`│ ${label} +│ +([\\d,.-]+)`).exec(stdout)?.[1];
  return Number(number?.replaceAll(',', ''));
}

/** Of every process that the output names. */
function pidsIn(stdout: string): number[] {
  return [...new Set([...stdout.matchAll(/\(pid\s+(\d+)\)/g)].map(([, pid]) => Number(pid)))];
}

describe.concurrent('the spool, run for real', { timeout: 120_000 }, () => {
  it('brings every line through the kills of both ends, and cleans up', async () => {
    const { code, stdout, stderr } = await run(process.execPath, [...EXAMPLE, '--duration', '1']);

    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout).toContain('Self-check passed');
    expect(widthOf(stdout)).toBeLessThanOrEqual(80);
    expect(stdout).not.toContain('\u001b');
    expect(stdout.match(/the collector .* is killed: SIGKILL/g)).toHaveLength(2);
    expect(stdout.match(/the shipper .* is killed: SIGKILL/g)).toHaveLength(2);
    expect(pidsIn(stdout)).toHaveLength(7);
    expect(pidsIn(stdout).filter(isRunning)).toEqual([]);
    expect(cell(stdout, 'lines written')).toBeGreaterThan(1_000);
    expect(cell(stdout, 'lines arrived')).toBe(cell(stdout, 'lines written'));
    expect(cell(stdout, 'deepest spool')).toBeGreaterThan(100);
    expect(cell(stdout, 'left in the spool')).toBe(0);
    expect(readdirSync(directory).filter((name) => name.startsWith('escapement-spool-'))).toEqual([]);
  });

  it.skipIf(process.platform === 'win32')('ends at Ctrl-C with 130 and leaves no process', async () => {
    const example = spawn(process.execPath, [...EXAMPLE, '--duration', '60'], { cwd: ROOT, env: ENV });
    const closed = once(example, 'close');
    let stdout = '';
    for await (const line of createInterface(example.stdout)) {
      stdout += `${line}\n`;
      if (line.includes('are running')) example.kill('SIGINT');
    }

    expect(await closed).toEqual([130, null]);
    expect(stdout).toContain('interrupted');
    expect(pidsIn(stdout)).toHaveLength(3);
    expect(pidsIn(stdout).filter(isRunning)).toEqual([]);
  });

  it.skipIf(process.platform === 'win32')(
    'ships what comes through a pipe, keeps it through SIGKILL and SIGTERM, and goes on where it was',
    async () => {
      const killed = ship('pipe', 'busy', '--confirm');
      killed.stdin.write(`${numbered(1, 1_000).join('\n')}\n`);
      await confirmed(killed, 1_000);
      killed.kill('SIGKILL');
      await once(killed, 'close');

      const stopped = ship('pipe', 'busy', '--confirm');
      const told = text(stopped.stderr);
      stopped.stdin.write(`${numbered(1_001, 1_500).join('\n')}\nhalf a li`);
      await confirmed(stopped, 500);
      stopped.kill('SIGTERM');
      expect(await once(stopped, 'close')).toEqual([3, null]);
      expect(await told).toMatch(/1,000 lines in .* from the last time[^]*1,500 lines stay in /);

      const last = ship('pipe', 'pipe');
      const end = text(last.stderr);
      last.stdin.end('line 1501');
      expect(await once(last, 'close')).toEqual([0, null]);
      expect(await end).toContain('forwarded 1,501 lines; the spool is empty');
      expect(collected.get('/pipe')).toEqual(numbered(1, 1_501));
    },
  );

  it.skipIf(process.platform === 'win32')('is a command in a pipeline', async () => {
    const quoted = shipping('shell', 'shell').map((word) => `'${word}'`);
    const lines = 'for (let i = 1; i <= 20000; i++) console.log("line " + i)';
    const { code, stdout } = await run('sh', ['-c', `node -e '${lines}' | node ${quoted.join(' ')}`]);

    expect({ code, stdout }).toEqual({ code: 0, stdout: '' });
    expect(collected.get('/shell')).toEqual(numbered(1, 20_000));
  });

  it('ends with 1 when the spool cannot be', async () => {
    const args = ['--spool', join(ROOT, 'package.json'), '--forward', 'http://localhost/'];
    const { code, stdout, stderr } = await run(process.execPath, [...EXAMPLE, ...args]);

    expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
    expect(stderr).toContain("error: queue 'lines': EEXIST");
  });
});
