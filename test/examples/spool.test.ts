import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import type { ServerResponse } from 'node:http';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { text } from 'node:stream/consumers';
import { beforeEach, expect, it, vi } from 'vitest';
import { Shipper, type ShipperOptions } from '../../examples/spool/shipper.ts';
import { folderOfTest } from '../folder.ts';
import { listen } from '../listen.ts';
import { eventually } from './support.ts';

const NEVER_MS = 600_000;
const KIB = 1024;

let directory: string;
let port: number;
/** What the collector does with a request. */
let answer: (lines: readonly string[], response: ServerResponse) => void;
/** Lines that the collector has accepted. */
let collected: string[];
let reports: string[];
let confirmed: number;
let shipper: Shipper;
let input: PassThrough;
let stop: AbortController;

beforeEach(async () => {
  directory = folderOfTest();
  [collected, reports, confirmed] = [[], [], 0];
  answer = accept;
  input = new PassThrough({ highWaterMark: 16 * KIB });
  stop = new AbortController();
  port = await listen((request, response) => {
    void text(request).then((body) => answer(body.split('\n').slice(0, -1), response));
  });
});

function accept(lines: readonly string[], response: ServerResponse): void {
  collected.push(...lines);
  response.writeHead(204).end();
}

function refuse(status: number, headers: Record<string, string> = {}) {
  return (_lines: unknown, response: ServerResponse): void => {
    response.writeHead(status, headers).end('no');
  };
}

async function open(changes: Partial<ShipperOptions> = {}): Promise<void> {
  shipper = await Shipper.open({
    ...{ directory, url: `http://127.0.0.1:${port}/lines` },
    ...{ durability: 'always', maxBytes: 1_000 * KIB, batchLines: 4, drainMs: NEVER_MS },
    onTaken: (lines) => (confirmed = lines),
    report: (line) => reports.push(line),
    ...changes,
  });
}

/** Ships the input to its end. Returns how many lines are left in the spool. */
async function ship(): Promise<number> {
  await shipper.run(input, stop.signal);
  return shipper.depth;
}

function linesOf(...numbers: readonly number[]): string {
  return numbers.map((number) => `line ${number}\n`).join('');
}

it('the shipper forwards every line in order, whatever the pieces of its input are, and ends with it', async () => {
  await open();
  const done = ship();
  for (const piece of ['line 1\nli', 'ne 2', '\n', '\nline 4: gr', 'ün\nline 5']) input.write(piece);
  input.end();

  expect(await done).toBe(0);
  expect(collected).toEqual(['line 1', 'line 2', '', 'line 4: grün', 'line 5']);
  expect({ confirmed, forwarded: shipper.forwarded }).toEqual({ confirmed: 5, forwarded: 5 });
});

it('the shipper keeps a line until the answer is here', async () => {
  await open();
  const asked = new Promise<ServerResponse>((resolve) => {
    answer = (_lines, response) => resolve(response);
  });
  input.end(linesOf(1));
  const done = ship();
  const response = await asked;

  expect(shipper).toMatchObject({ depth: 1, forwarded: 0 });
  response.writeHead(200).end();
  expect(await done).toBe(0);
});

it('the shipper repeats what is answered 5xx, 429 or not at all, and reports each reason once', async () => {
  const troubles = [
    ...[refuse(503), refuse(503), refuse(429, { 'retry-after': '0.01' })],
    (_: unknown, response: ServerResponse) => response.destroy(),
  ];
  answer = (lines, response) => {
    const trouble = troubles.shift() ?? accept;
    trouble(lines, response);
  };
  await open();
  input.end(linesOf(1, 2));

  expect(await ship()).toBe(0);
  expect(collected).toEqual(['line 1', 'line 2']);
  expect(reports).toEqual([
    'the collector answers 503',
    'the collector answers 429',
    'no answer from the collector: UND_ERR_SOCKET',
    'the collector accepts lines again',
  ]);
});

it('the shipper waits for as long as Retry-After requires', async () => {
  const times: number[] = [];
  answer = (lines, response) => {
    times.push(performance.now());
    if (times.length > 1) accept(lines, response);
    else refuse(503, { 'retry-after': '0.3' })(lines, response);
  };
  await open();
  input.end(linesOf(1));
  await ship();

  const [first = NaN, second = NaN] = times;
  expect(second - first).toBeGreaterThanOrEqual(295);
});

it('the shipper finds the one line that is refused, sets it aside, and forwards the others', async () => {
  answer = (lines, response) => {
    if (lines.includes('line 3')) refuse(422)(lines, response);
    else accept(lines, response);
  };
  await open();
  input.end(linesOf(1, 2, 3, 4, 5));

  expect(await ship()).toBe(0);
  expect(collected).toEqual(['line 1', 'line 2', 'line 4', 'line 5']);
  expect(await readFile(join(directory, 'rejected.log'), 'utf8')).toBe('line 3\n');
  expect(shipper.forwarded).toBe(4);
  expect(reports).toEqual([
    `the collector refuses a line with 422: it is in ${join(directory, 'rejected.log')}`,
  ]);
});

it.each([301, 401, 404])('the shipper loses no line at %i, which is not about the lines', async (status) => {
  answer = refuse(status, { location: '/elsewhere' });
  await open({ drainMs: 0 });
  input.end(linesOf(1, 2));

  expect(await ship()).toBe(2);
  expect(existsSync(join(directory, 'rejected.log'))).toBe(false);
});

it('the shipper forwards first what was left the last time', async () => {
  answer = refuse(503);
  await open({ drainMs: 0 });
  input.end(linesOf(1, 2));
  expect(await ship()).toBe(2);

  input = new PassThrough();
  answer = accept;
  await open();
  expect(shipper.depth).toBe(2);
  input.end(linesOf(3));
  expect(await ship()).toBe(0);
  expect(collected).toEqual(['line 1', 'line 2', 'line 3']);
});

it('the shipper stops between two requests, and waits for the answer of the first one', async () => {
  answer = (lines, response) => {
    stop.abort();
    accept(lines, response);
  };
  await open();
  input.write(linesOf(1, 2, 3, 4, 5, 6));

  expect(await ship()).toBe(6 - collected.length);
  expect(collected).toEqual(['line 1', 'line 2', 'line 3', 'line 4'].slice(0, collected.length));
  expect(collected.length).toBeGreaterThan(0);
});

it('the shipper reads no more while the spool is full, without a warning, and goes on when there is capacity', async () => {
  const warn = vi.spyOn(process, 'emitWarning');
  answer = refuse(503);
  await open({ maxBytes: 64 * KIB });
  const done = ship();
  const line = `${'x'.repeat(KIB - 1)}\n`;
  input.write(line.repeat(60));
  await eventually(() => expect(confirmed).toBe(60));
  input.write(line.repeat(10)); // there is capacity for four of them
  await eventually(() => expect(shipper.depth).toBe(64));
  expect(input.write(line.repeat(30))).toBe(false);
  expect({ confirmed, unread: input.readableLength }).toEqual({ confirmed: 60, unread: 30 * KIB });

  answer = accept;
  input.end();
  expect(await done).toBe(0);
  expect(collected).toHaveLength(100);
  expect(warn).not.toHaveBeenCalled();
  warn.mockRestore();
});

it('the shipper ends at a stop while the spool is full, without the lines that had no capacity', async () => {
  answer = refuse(503);
  await open({ maxBytes: 64 * KIB });
  const done = ship();
  input.write(`${'x'.repeat(KIB)}\n`.repeat(70));
  await eventually(() => expect(shipper.depth).toBe(64));
  stop.abort();

  expect(await done).toBe(64);
  expect(confirmed).toBe(0);
});

it('the shipper fails when its input does, and keeps what it has', async () => {
  answer = refuse(503);
  await open();
  const done = ship();
  input.write(linesOf(1));
  await eventually(() => expect(confirmed).toBe(1));
  input.destroy(new Error('the pipe is broken'));

  await expect(done).rejects.toThrow('the pipe is broken');
  await open();
  expect(shipper.depth).toBe(1);
  stop.abort();
  await shipper.run(new PassThrough(), stop.signal);
});
